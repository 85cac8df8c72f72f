// For loops of tests that wait for another process or thread: they have nothing to sleep on, and must not
// keep the processor from what they wait for.
#pragma once

#include "os/wait_set.h"

namespace cluster::test {

inline void yield_processor() {
  static thread_local std::uint32_t times = 0;
  os::yield_or_sleep(++times, 64);
}

}  // namespace cluster::test
