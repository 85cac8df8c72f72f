#include "network/flood_watch.h"

#include <cstddef>
#include <utility>

#include "wire/frame.h"

namespace cluster::network {
namespace {

/// An engine that is seldom run has read no more than a few bursts in that time.
constexpr std::int64_t kIntervalsMax = 8;

}  // namespace

bool FloodLevel::review(std::int64_t intervals) {
  const std::int64_t seen = std::exchange(seen_, 0);
  const std::int64_t extra = std::exchange(extra_, 0);
  if (shift_ == 0) {
    spare_ = std::min(kBurst, spare_ + kPerInterval * std::min(intervals, kBurst)) - seen - extra;
    if (spare_ >= 0) return false;
    spare_ = 0;
  }
  const std::int64_t allowed = kPerInterval * std::min(intervals, kIntervalsMax);
  const unsigned before = shift_;
  for (std::int64_t left = seen; left > allowed && shift_ < link::Thinning::kShiftMax; left /= 2) ++shift_;
  // Half of the rate would let twice as many through: so there is space between the two limits. An engine that comes late reads no
  // more of what waits aside: as little of a flood as in one interval is no sign that it is over.
  if (shift_ == before && shift_ != 0 && seen < kPerInterval / 4) --shift_;
  return shift_ != before;
}

void FloodWatch::note_session(Time now, std::uint32_t session) {
  const auto mark = static_cast<std::uint8_t>(session);
  const link::SessionMarks& marks = asked_for_.marks;
  begin(now);
  if (mark == marks.member) return member_.note(1);
  if (mark == marks.unknown) return unknown_.note(1);
  session == 0 ? unmarked_.note(1) : unmarked_.note_useless();
}

void FloodWatch::note_bytes(Time now, ConstBytes bytes) {
  constexpr std::size_t kMark = offsetof(wire::FrameHeader, session);
  constexpr std::uint32_t kNone = 0x100;  // no session, and without mark
  note_session(now, kNone | (bytes.size() > kMark ? std::to_integer<std::uint32_t>(bytes[kMark]) : 0));
}

/// Those without a mark, until they wait aside: then fewer of them come than would be a flood, so more than that have one.
void FloodWatch::note_total(Time now, std::uint64_t frames) {
  const std::uint64_t before = std::exchange(total_, frames);
  if (frames == before) return;
  begin(now);
  unmarked_.note(frames - before);
  if (unmarked_.shift() == 0) return;
  unknown_.note(frames - before);
  member_.note(frames - before);
}

void FloodWatch::review_now(Time now) {
  const std::int64_t intervals = std::max<std::int64_t>(1, (now - last_) / kInterval);
  for (FloodLevel* const level : {&member_, &unknown_, &unmarked_}) level->review(intervals);
  last_ = now;
  link::Thinning wanted{asked_for_.marks, unknown_.shift(), unmarked_.shift() != 0};
  if (member_.shift() != 0) {
    wanted.members = members_();
    std::ranges::sort(wanted.members);
    if (wanted.members.size() <= link::Thinning::kMembersMax) {
      wanted.member_shift = member_.shift();
    } else {
      wanted.members.clear();
    }
  }
  if (wanted != asked_for_) {
    asked_for_ = std::move(wanted);
    link_->thin(asked_for_);
  }
  next_ = thins() ? now + kInterval : kNever;
}

}  // namespace cluster::network
