#include "os/system_clock.h"

#include <time.h>

namespace cluster::os {

Time SystemClock::now() {
  timespec moment{};
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return Time(std::chrono::seconds(moment.tv_sec) + std::chrono::nanoseconds(moment.tv_nsec));
}

}  // namespace cluster::os
