// The monotonic clock of the machine, in nanoseconds. Reading the clock takes about 20 ns and no system call.
// An engine reads the clock after it has polled the network, and before each burst that it sends. The clock
// never jumps, and it stops while the machine is suspended. The wall clock serves only to convert the
// kernel's timestamps and to number the incarnations of an endpoint.
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

/// Converts the kernel's arrival timestamps, which are wall-clock times, to times of the environment's clock.
/// It uses the difference between the two clocks. refresh() reads this difference again if the last reading
/// is older than about a millisecond. In a millisecond, NTP changes the difference by at most half a
/// microsecond. After someone has set the system time, converted timestamps are wrong for up to a
/// millisecond. Therefore the user of a timestamp checks that the time is possible: neither too early nor in
/// the future.
class ArrivalClock {
 public:
  explicit ArrivalClock(Clock& clock) : clock_(clock), read_at_(clock.ticks() - kEvery) {}

  /// Reads the difference again if it is old. Called before a batch of time_of() calls.
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
