// When frames came, on the time line of the environment: the kernel stamps them by the wall clock. How far
// apart the two are is read anew once in a while, by ticks: a millisecond at most,
// in which a clock that is being corrected drifts by half a microsecond. Somebody who sets the time makes
// stamps wrong for that long: whoever uses them knows within what bounds they can be right.
#pragma once

#include <cstdint>

#include "base/environment.h"

namespace cluster::os {

class ArrivalClock {
 public:
  explicit ArrivalClock(Clock& clock) : clock_(clock), read_at_(clock.ticks() - kEvery) {}

  /// Before stamps are read that were found together.
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
