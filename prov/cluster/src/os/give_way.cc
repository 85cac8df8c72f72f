#include "os/give_way.h"

#include <sched.h>
#include <time.h>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

constexpr std::uint64_t kTicksPerNap = 1 << 21;

void nap() {
  const timespec shortest{0, 1};
  nanosleep(&shortest, nullptr);
}

}  // namespace

void give_way(std::uint32_t times, std::uint32_t times_per_nap) {
  if (times % times_per_nap != 0) {
    sched_yield();
    return;
  }
  nap();
}

std::uint64_t yield() {
  SystemClock clock;
  const std::uint64_t gone = clock.ticks();
  sched_yield();
  return clock.ticks() - gone;
}

void nap_if_due(std::uint64_t& rested) {
  const std::uint64_t now = SystemClock().ticks();
  if (rested == 0) rested = now;
  if (now - rested < kTicksPerNap) return;
  nap();
  rested = now;
}

}  // namespace cluster::os
