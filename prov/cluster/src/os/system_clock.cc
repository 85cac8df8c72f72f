#include "os/system_clock.h"

#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cluster::os {

Time SystemClock::now() {
  timespec moment{};
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return Time(std::chrono::seconds(moment.tv_sec) + std::chrono::nanoseconds(moment.tv_nsec));
}

std::uint64_t SystemClock::ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return Clock::ticks();
#endif
}

}  // namespace cluster::os
