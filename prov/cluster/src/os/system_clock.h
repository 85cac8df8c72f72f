// The monotonic clock of the machine, in nanoseconds: about 20 ns a reading, no system call. Read by
// engines when they have looked at the network, and before each burst that leaves; it jumps for nobody and
// stops while the machine sleeps. The wall clock is read only for what the kernel has stamped with it.
#pragma once

#include "base/environment.h"

namespace cluster::os {

class SystemClock final : public Clock {
 public:
  Time now() override;
  Duration realtime_offset() override;
  std::uint64_t ticks() override;
};

}  // namespace cluster::os
