#include "os/processor_yield.h"

#include <sched.h>
#include <time.h>

#include "os/system_clock.h"

namespace cluster::os {

void sleep_shortest() {
  const timespec shortest{0, 1};
  nanosleep(&shortest, nullptr);
}

void sleep_shortest_cancellable() {
  const timespec shortest{0, 1};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &shortest, nullptr);
}

void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep) {
  times % times_per_sleep == 0 ? sleep_shortest() : static_cast<void>(sched_yield());
}

std::uint64_t timed_yield() {
  SystemClock clock;
  const std::uint64_t gone = clock.ticks();
  sched_yield();
  return clock.ticks() - gone;
}

}  // namespace cluster::os
