// Waiting without a wait object: the thread itself makes progress until there is something to say,
// and gives the processor away between its turns.
#pragma once

#include <rdma/fi_eq.h>

#include <thread>

#include "api/object.h"
#include "base/environment.h"

namespace cluster::api {

/// 0 if objects can be opened with this wait object.
inline int check_wait_object(fi_wait_obj object) {
  return object == FI_WAIT_NONE || object == FI_WAIT_UNSPEC ? 0 : -FI_ENOSYS;
}

/// fi_control of everything one can wait on.
inline int control_wait(int command, void* argument, fi_wait_obj object) {
  if (command != FI_GETWAITOBJ) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  *static_cast<fi_wait_obj*>(argument) = object;
  return 0;
}

/// Repeats `attempt` until it answers anything but -FI_EAGAIN or until `timeout` milliseconds have
/// passed (negative: never; 0: one attempt).
template <typename Attempt>
ssize_t wait_until(Clock& clock, int timeout, Attempt&& attempt) {
  constexpr unsigned kTurnsBeforeYield = 64;
  ssize_t result = attempt();
  if (timeout == 0 || result != -FI_EAGAIN) return result;
  const Time end = timeout < 0 ? kNever : clock.now() + std::chrono::milliseconds(timeout);
  for (unsigned turns = 1; result == -FI_EAGAIN && clock.now() < end; ++turns) {
    if (turns > kTurnsBeforeYield) std::this_thread::yield();
    result = attempt();
  }
  return result;
}

}  // namespace cluster::api
