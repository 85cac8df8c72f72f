// Converts the kernel's arrival stamps, which are wall-clock times, to the time line of the environment. The
// difference between the two clocks is read anew about once a millisecond, in which a clock that is being
// corrected drifts by half a microsecond. Setting the time makes stamps wrong for that long, so users of a
// stamp check it against the times between which it must lie.
#pragma once

#include <cstdint>

#include "base/environment.h"

namespace cluster::os {

class ArrivalClock {
 public:
  explicit ArrivalClock(Clock& clock) : clock_(clock), read_at_(clock.ticks() - kEvery) {}

  /// Call once before a batch of time_of().
  void refresh() {
    const std::uint64_t ticks = clock_.ticks();
    if (ticks - read_at_ < kEvery) return;
    read_at_ = ticks;
    ahead_ = clock_.realtime_offset();
  }
  Time time_of(Duration stamp) const { return Time(stamp - ahead_); }

 private:
  static constexpr std::uint64_t kEvery = 1 << 20;

  Clock& clock_;
  std::uint64_t read_at_;
  Duration ahead_{0};
};

}  // namespace cluster::os
