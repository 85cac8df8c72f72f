// The monotonic clock of the machine, in nanoseconds.
#pragma once

#include "base/environment.h"

namespace cluster::os {

class SystemClock final : public Clock {
 public:
  Time now() override;
};

}  // namespace cluster::os
