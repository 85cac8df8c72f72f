#include "os/processor_yield.h"

#include <sched.h>
#include <time.h>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

constexpr std::uint64_t kTicksBetweenSleeps = 1 << 21;

void shortest_sleep() {
  const timespec shortest{0, 1};
  nanosleep(&shortest, nullptr);
}

}  // namespace

void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep) {
  if (times % times_per_sleep != 0) {
    sched_yield();
    return;
  }
  shortest_sleep();
}

std::uint64_t timed_yield() {
  SystemClock clock;
  const std::uint64_t gone = clock.ticks();
  sched_yield();
  return clock.ticks() - gone;
}

void sleep_if_due(std::uint64_t& rested) {
  const std::uint64_t now = SystemClock().ticks();
  if (rested == 0) rested = now;
  if (now - rested < kTicksBetweenSleeps) return;
  shortest_sleep();
  rested = now;
}

}  // namespace cluster::os
