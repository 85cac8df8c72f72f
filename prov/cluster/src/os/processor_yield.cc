#include "os/processor_yield.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "os/system_clock.h"

namespace cluster::os {
void sleep_shortest() {
  const timespec shortest{0, 1};
  nanosleep(&shortest, nullptr);
}

void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep) {
  if (times % times_per_sleep != 0) {
    sched_yield();
    return;
  }
  sleep_shortest();
}

bool is_crowded(const char* loadavg, long processors) {
  long runnable = 0;  // three averages, then runnable/all
  if (std::sscanf(loadavg, "%*s %*s %*s %ld/", &runnable) != 1) return true;
  return runnable > processors;
}

bool processors_crowded() {
  static const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  static const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  char text[80] = {};
  if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) return true;
  return is_crowded(text, processors);
}

std::uint64_t timed_yield() {
  SystemClock clock;
  const std::uint64_t gone = clock.ticks();
  sched_yield();
  return clock.ticks() - gone;
}

}  // namespace cluster::os
