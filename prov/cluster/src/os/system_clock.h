// The monotonic clock of the machine, in nanoseconds: about 20 ns a reading, no system call. Read
// once per turn by engines; it jumps for nobody and stops while the machine sleeps.
#pragma once

#include "base/environment.h"

namespace cluster::os {

class SystemClock final : public Clock {
 public:
  Time now() override;
  Duration stamps_ahead() override;
  std::uint64_t ticks() override;
};

}  // namespace cluster::os
