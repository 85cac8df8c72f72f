// The monotonic clock of the machine, in nanoseconds. A reading costs about 20 ns and no system call. Engines
// read it after they have polled the network and before each burst that they send. It never jumps, and stops
// while the machine sleeps. The wall clock serves only to convert the kernel's stamps.
#pragma once

#include <cstdint>

#include "base/environment.h"

namespace cluster::os {

class SystemClock final : public Clock {
 public:
  Time now() override;
  Duration realtime_offset() override;
  std::uint64_t ticks() override;
};

/// Converts the kernel's arrival stamps, which are wall-clock times, to the time line of the environment. It
/// reads the difference between the two clocks about once a millisecond. In this time, a clock that is being
/// corrected drifts by half a microsecond. When somebody sets the system time, stamps are wrong for up to a
/// millisecond. So the user of a stamp checks that it lies between the times that bound it.
class ArrivalClock {
 public:
  explicit ArrivalClock(Clock& clock) : clock_(clock), read_at_(clock.ticks() - kEvery) {}

  /// Call it once before a batch of time_of() calls.
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
