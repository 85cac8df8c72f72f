#include "os/give_way.h"

#include <sched.h>
#include <time.h>

namespace cluster::os {

void give_way(std::uint32_t times, std::uint32_t times_per_nap) {
  if (times % times_per_nap != 0) {
    sched_yield();
    return;
  }
  const timespec shortest{0, 1};
  nanosleep(&shortest, nullptr);
}

}  // namespace cluster::os
