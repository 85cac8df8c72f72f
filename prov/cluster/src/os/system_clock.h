// The monotonic clock of the machine, in nanoseconds: about 20 ns a reading, no system call. Read by engines
// after they have polled the network, and before each burst that leaves. It never jumps, and stops while the
// machine sleeps. The wall clock is read only to convert the kernel's stamps.
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
