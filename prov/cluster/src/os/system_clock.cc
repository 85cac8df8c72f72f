#include "os/system_clock.h"

#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cluster::os {
namespace {

Duration read(clockid_t clock) {
  timespec moment{};
  clock_gettime(clock, &moment);
  return std::chrono::seconds(moment.tv_sec) + std::chrono::nanoseconds(moment.tv_nsec);
}

}  // namespace

Time SystemClock::now() { return Time(read(CLOCK_MONOTONIC)); }

Duration SystemClock::stamps_ahead() {
  const Duration wall = read(CLOCK_REALTIME);
  return wall - read(CLOCK_MONOTONIC);
}

std::uint64_t SystemClock::ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return Clock::ticks();
#endif
}

}  // namespace cluster::os
