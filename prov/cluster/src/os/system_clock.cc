#include "os/system_clock.h"

#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace cluster::os {
namespace {

constexpr Duration kUndisturbed = 1us;
constexpr unsigned kReadings = 3;

Duration time_of(clockid_t clock) {
  timespec moment{};
  clock_gettime(clock, &moment);
  return std::chrono::seconds(moment.tv_sec) + std::chrono::nanoseconds(moment.tv_nsec);
}

}  // namespace

Time SystemClock::now() { return Time(time_of(CLOCK_MONOTONIC)); }

/// If a reading takes so long that the kernel has probably preempted the thread, reads the clocks again, up
/// to kReadings times in all.
Duration SystemClock::realtime_offset() {
  Duration before = time_of(CLOCK_MONOTONIC);
  for (unsigned attempt = 1;; ++attempt) {
    const Duration wall = time_of(CLOCK_REALTIME);
    const Duration after = time_of(CLOCK_MONOTONIC);
    if (after - before < kUndisturbed || attempt == kReadings) return wall - after;
    before = after;
  }
}

std::uint64_t SystemClock::ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return Clock::ticks();
#endif
}

}  // namespace cluster::os
