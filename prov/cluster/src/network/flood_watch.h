// Notices a flood of frames that belong to no session, and has the link put what carries no mark aside (docs/protocol.md 2.8). kPerInterval
// such frames may come per kInterval, and kBurst more at once: a crowd that calls together is no flood. No crowd names a session of another
// process, or sends nonsense: such a frame counts as kUselessWeight frames of the burst, so that a few hundred of them are enough to notice
// a flood before the receive ring overflows. The flood is over when fewer than a quarter of kPerInterval come in an interval.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/units.h"
#include "link/link.h"

namespace cluster::network {

class FloodWatch {
 public:
  static constexpr Duration kInterval = link::Thinning::kAsideInterval;
  static constexpr std::int64_t kPerInterval = 32;
  static constexpr std::int64_t kBurst = 8192;
  static constexpr std::int64_t kUselessWeight = 16;

  /// `link` may be null: then nothing comes.
  FloodWatch(link::Link* link, std::uint8_t mark) : link_(link), thinning_{.mark = mark} {}

  /// A frame that belongs to no session, or that the session which it names does not take.
  void note_session(Time now, std::uint32_t session) { note(now, 1, session == 0 ? 1 : kUselessWeight); }
  void note_nonsense(Time now) { note(now, 1, kUselessWeight); }
  /// Of these frames only the number so far is known.
  void note_total(Time now, std::uint64_t frames) {
    const auto more = static_cast<std::int64_t>(frames - std::exchange(total_, frames));
    if (more != 0) note(now, more, more);
  }
  /// Takes a look if it is time.
  void review(Time now) {
    if (now >= next_) [[unlikely]]
      review_now(now);
  }
  /// When the next look is due, even if nothing comes: frames wait aside, and the link is to stop that after the flood.
  Time deadline() const { return flood() ? next_ : kNever; }
  bool flood() const { return thinning_.on; }

 private:
  static constexpr std::int64_t kIntervalsMax = 8;

  void note(Time now, std::int64_t frames, std::int64_t weight) {
    if (next_ == kNever) next_ = std::max(now, last_) + kInterval;
    seen_ += frames;
    weight_ += weight;
  }
  /// An engine that comes late during a flood has read only what one look aside takes, so the end of a flood is judged as if one interval
  /// had passed. Two looks aside may fall into one interval and none into the next, so half of what was seen counts once more. Before a
  /// flood an engine that comes late has read no more than a few bursts.
  void review_now(Time now) {
    const std::int64_t intervals = std::clamp<std::int64_t>((now - last_) / kInterval, 1, kBurst);
    const std::int64_t allowed = kPerInterval * std::min(intervals, kIntervalsMax);
    const bool before = thinning_.on;
    const std::int64_t spare = before ? 0 : std::min(kBurst, spare_ + kPerInterval * intervals) - weight_;
    thinning_.on = before ? seen_ >= kPerInterval / 4 : spare < 0 && seen_ > allowed;
    spare_ = std::max<std::int64_t>(spare, 0);
    seen_ = flood() ? seen_ / 2 : 0;
    weight_ = 0;
    last_ = now;
    next_ = flood() ? now + kInterval : kNever;
    if (flood() != before) link_->thin(thinning_);
  }

  link::Link* link_;
  link::Thinning thinning_;
  std::int64_t seen_ = 0;        ///< frames since the last look, and during a flood half of those before
  std::int64_t weight_ = 0;      ///< what these count towards the burst
  std::int64_t spare_ = kBurst;  ///< of the burst
  std::uint64_t total_ = 0;      ///< as noted last
  Time last_{};                  ///< look
  Time next_ = kNever;           ///< kNever: nothing has come since the last one
};

}  // namespace cluster::network
