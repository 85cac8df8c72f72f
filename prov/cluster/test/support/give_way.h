// For loops of tests that wait for another process or thread: they have nothing to sleep on, and must not
// keep the processor from whom they wait for.
#pragma once

#include "os/give_way.h"

namespace cluster::test {

inline void give_way() {
  static thread_local std::uint32_t times = 0;
  os::give_way(++times, 64);
}

}  // namespace cluster::test
