// Detects a flood of frames that belong to no session. During a flood, the link puts aside all frames without
// the mark of members (link/link.h: Thinning; docs/protocol.md 2.8). The watch allows kPerInterval frames
// outside any session per kInterval, and kBurst more at once, because many peers may call at the same time.
// Peers hardly ever send malformed frames, or frames that name a session that does not exist. So each frame
// of these two kinds counts as kUselessWeight frames. A few hundred of them reveal a flood before the link's
// receive buffer overflows. The flood is over when fewer than kPerInterval / 4 frames arrive in an interval.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/units.h"
#include "link/link.h"

namespace cluster::network {

class FloodWatch {
 public:
  using Sessions = decltype(link::Thinning::sessions);
  static constexpr Duration kInterval = link::Thinning::kAsideInterval;
  static constexpr std::int64_t kPerInterval = 32;
  static constexpr std::int64_t kBurst = 8192;
  static constexpr std::int64_t kUselessWeight = 16;

  /// `link` may be null if no frames ever arrive.
  FloodWatch(link::Link* link, std::uint8_t mark) : link_(link), thinning_{.mark = mark} {}

  /// Counts a frame that no flow has accepted. `session`: the session that the frame names, or 0.
  void note_session(Time now, std::uint32_t session) { note(now, 1, session == 0 ? 1 : kUselessWeight); }
  void note_nonsense(Time now) { note(now, 1, kUselessWeight); }
  /// Counts frames of which the caller knows only the number. `frames`: the total number so far.
  void note_total(Time now, std::uint64_t frames) {
    const auto more = static_cast<std::int64_t>(frames - std::exchange(total_, frames));
    if (more != 0) note(now, more, more);
  }
  /// If the next review is due, decides whether there is a flood, and returns true if there is one. Otherwise
  /// returns false.
  bool review(Time now) {
    if (now < next_) [[likely]]
      return false;
    review_now(now);
    return flood();
  }
  /// Makes frames of these sessions pass during the flood, although they lack the mark.
  void pass(const Sessions& sessions) {
    if (thinning_.sessions == sessions) return;
    thinning_.sessions = sessions;
    if (flood()) link_->thin(thinning_);
  }
  /// Returns when the next review is needed even if no frame arrives, or kNever. During a flood, only a
  /// review can make the link stop putting frames aside.
  Time deadline() const { return flood() ? next_ : kNever; }
  bool flood() const { return thinning_.on; }

 private:
  static constexpr std::int64_t kIntervalsMax = 8;

  void note(Time now, std::int64_t frames, std::int64_t weight) {
    if (next_ == kNever) next_ = std::max(now, last_) + kInterval;
    seen_ += frames;
    weight_ += weight;
  }
  /// Decides whether there is a flood. During a flood, the link puts frames aside, and the engine reads these
  /// frames at most once per interval. Even a late engine has read these frames only once. Therefore the
  /// function decides on the end of the flood as if one interval had passed. One review may follow two of
  /// these reads, and the next review none. Therefore half of the frames of one review are added to those of
  /// the next review. Outside a flood, a late engine has read at most a few bursts. Therefore the function
  /// allows the frames of at most kIntervalsMax intervals.
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
  /// The number of frames since the last review. During a flood, half of the number at the last review is
  /// added.
  std::int64_t seen_ = 0;
  std::int64_t weight_ = 0;      ///< how much the frames since the last review count towards the burst
  std::int64_t spare_ = kBurst;  ///< what is left of kBurst
  std::uint64_t total_ = 0;      ///< the total of the last note_total()
  Time last_{};                  ///< when the last review was
  Time next_ = kNever;           ///< kNever: no frame has arrived since the last review
};

}  // namespace cluster::network
