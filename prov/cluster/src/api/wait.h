// Waiting: for a completion, a count, an event. A thread that waits looks a few times, in case what it
// waits for is on its way, and then sleeps on the descriptors of the engines concerned. Where there is
// none to be had (FI_WAIT_YIELD, a process out of descriptors, an engine one cannot sleep on) it goes on
// looking, and gives the processor away in between.
//
// The same descriptor is what fi_control(FI_GETWAIT) hands out. fi_trywait is the only thing that makes
// it true: it takes a turn of the engines, and if nothing came in, arms them.
#pragma once

#include <rdma/fi_eq.h>

#include <algorithm>

#include "api/fid_object.h"
#include "base/enumeration.h"
#include "base/environment.h"
#include "engine/sleeper.h"

namespace cluster::api {

/// 0 if objects can be opened with this wait object.
inline int check_wait_object(const fi_wait_obj& object) {
  switch (number_of(object)) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_YIELD: return 0;
    default: return -FI_ENOSYS;
  }
}

/// fi_control of everything one can wait on. `sleeper()` may answer null: out of descriptors.
template <typename MakeSleeper>
int control_wait(int command, void* argument, fi_wait_obj object, MakeSleeper&& sleeper) {
  if (command != FI_GETWAITOBJ && command != FI_GETWAIT) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = object == FI_WAIT_UNSPEC ? FI_WAIT_FD : object;
    return 0;
  }
  if (object == FI_WAIT_NONE || object == FI_WAIT_YIELD) return -FI_ENODATA;
  engine::Sleeper* const there = sleeper();
  if (there == nullptr) return -FI_EMFILE;
  *static_cast<int*>(argument) = there->descriptor();
  return 0;
}

/// How long a thread looks before it sleeps: about what a sleep costs.
inline constexpr Duration kSpinBeforeSleep = 20us;
inline constexpr unsigned kSpinsBeforeYield = 64;
inline constexpr unsigned kSpinsPerNap = 1024;

inline constexpr std::chrono::milliseconds kForever = engine::Sleeper::kForever;

/// Repeats `attempt` until it answers anything but -FI_EAGAIN, until `timeout` milliseconds have
/// passed (negative: never; 0: one attempt), or until a signal interrupts its sleep (-FI_EINTR). `sleeper()`
/// is what to sleep on, or null; `arm(sleeper)` says how long that is safe: kForever if it is sure to wake
/// when another attempt is worth while.
template <typename Attempt, typename MakeSleeper, typename Arm>
ssize_t wait_until(Clock& clock, int timeout, Attempt&& attempt, MakeSleeper&& sleeper, Arm&& arm) {
  ssize_t result = attempt();
  if (timeout == 0 || result != -FI_EAGAIN) return result;
  Time now = clock.now();
  const Time end = timeout < 0 ? kNever : now + std::chrono::milliseconds(timeout);
  const Time sleep_from = now + kSpinBeforeSleep;
  engine::Sleeper* bed = nullptr;
  for (unsigned looks = 1; now < end; ++looks, now = clock.now()) {
    if (now >= sleep_from && bed == nullptr) bed = sleeper();
    const std::chrono::milliseconds safe = bed != nullptr ? arm(*bed) : 0ms;
    if (safe > 0ms) {
      const auto left = end == kNever ? kForever : std::chrono::ceil<std::chrono::milliseconds>(end - now);
      if (bed->wait(std::min(safe, left)) == engine::Sleeper::Wake::interrupted) return -FI_EINTR;
    } else if (looks > kSpinsBeforeYield) {
      engine::Sleeper::give_way(looks, kSpinsPerNap);
    }
    result = attempt();
    if (result != -FI_EAGAIN) return result;
  }
  return result;
}

}  // namespace cluster::api
