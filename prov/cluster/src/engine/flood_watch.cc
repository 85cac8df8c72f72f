#include "engine/flood_watch.h"

#include <cstddef>
#include <utility>

#include "wire/frame.h"

namespace cluster::engine {
namespace {

/// An engine that is seldom run has read no more than a few bursts in that time.
constexpr std::int64_t kIntervalsMax = 8;

}  // namespace

bool FloodLevel::review(std::int64_t intervals) {
  const std::int64_t seen = std::exchange(seen_, 0);
  if (shift_ == 0) {
    spare_ = std::min(kBurst, spare_ + kPerInterval * std::min(intervals, kBurst)) - seen;
    if (spare_ >= 0) return false;
    spare_ = 0;
  }
  const std::int64_t allowed = kPerInterval * std::min(intervals, kIntervalsMax);
  const unsigned before = shift_;
  for (std::int64_t left = seen; left > allowed && shift_ < link::Thinning::kShiftMax; left /= 2) ++shift_;
  // Half of the rate would let twice as many through: so there is space between the two limits.
  if (shift_ == before && shift_ != 0 && seen < allowed / 4) --shift_;
  return shift_ != before;
}

void FloodWatch::note_session(Time now, std::uint32_t session) {
  const auto mark = static_cast<std::uint8_t>(session);
  if (mark == marks_.member) return;
  begin(now);
  (mark == marks_.unknown ? unknown_ : unmarked_).note(1);
}

void FloodWatch::note_bytes(Time now, ConstBytes bytes) {
  constexpr std::size_t kMark = offsetof(wire::FrameHeader, session);
  note_session(now, bytes.size() > kMark ? std::to_integer<std::uint32_t>(bytes[kMark]) : 0);
}

void FloodWatch::note_total(Time now, std::uint64_t frames) {
  const std::uint64_t before = std::exchange(total_, frames);
  if (frames == before) return;
  begin(now);
  unmarked_.note(frames - before);
}

void FloodWatch::review_now(Time now) {
  const std::int64_t intervals = std::max<std::int64_t>(1, (now - last_) / kInterval);
  const bool unknown = unknown_.review(intervals);
  const bool unmarked = unmarked_.review(intervals);
  last_ = now;
  if (unknown || unmarked) link_->thin({marks_, unknown_.shift(), unmarked_.shift() != 0});
  next_ = thins() ? now + kInterval : kNever;
}

}  // namespace cluster::engine
