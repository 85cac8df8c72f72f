// Waits for a completion, an event, or a value of a counter. A waiting thread polls for kSpinBeforeSleep, and
// then sleeps on the descriptors of the engines. With FI_WAIT_YIELD, or if no descriptor is free, the thread
// keeps polling. Between polls the thread yields the processor or sleeps for a moment.
//
// A cancelled thread (pthread_cancel) ends while it sleeps here, and nowhere else in the provider
// (os/cancellation.h). At that moment the thread has removed no completion. It holds no resource, except
// perhaps the claim on a sleeper, which ends with the thread. The functions from the ops table down to the
// sleep hold no lock, have no object to destroy, and contain no try and no noexcept. So it does no harm if
// the C library ends the thread without unwinding it, or if the unwinder does not understand the provider's
// code.
//
// fi_control(FI_GETWAIT) returns the descriptor on which waiting threads sleep. An application may sleep on
// it only after fi_trywait. That call polls the engines, and arms them if nothing has arrived.
#pragma once

#include <rdma/fi_eq.h>

#include <algorithm>

#include "api/fid_object.h"
#include "api/platform.h"
#include "api/progress.h"
#include "base/enumeration.h"
#include "base/environment.h"

namespace cluster::api {

/// Returns 0 if the provider supports this wait object, else -FI_ENOSYS. FI_WAIT_SET needs a `set`; without
/// one, returns -FI_EINVAL.
inline int check_wait_object(const fi_wait_obj& object, const fid_wait* set) {
  switch (number_of(object)) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_YIELD: return 0;
    case FI_WAIT_SET: return set != nullptr ? 0 : -FI_EINVAL;
    default: return -FI_ENOSYS;
  }
}

/// Implements fi_control of queues and counters.
template <typename Object>
int control_wait(fid* plain, int command, void* argument) noexcept {
  if (command != FI_GETWAITOBJ && command != FI_GETWAIT) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  Progress& progress = object_of<Object>(plain).progress();
  const fi_wait_obj wait_object = progress.wait_object();
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = wait_object == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait_object;
    return 0;
  }
  if (wait_object != FI_WAIT_UNSPEC && wait_object != FI_WAIT_FD) return -FI_ENODATA;
  return guarded([&] {
    engine::Sleeper* const sleeper = progress.sleeper();
    if (sleeper == nullptr) return -FI_EMFILE;
    *static_cast<int*>(argument) = sleeper->descriptor();
    return 0;
  });
}

/// How long a thread polls before it sleeps. A sleep with its wake-up costs about this much time.
inline constexpr Duration kSpinBeforeSleep = 20us;
inline constexpr unsigned kSpinsBeforeYield = 64;
inline constexpr unsigned kSpinsPerSleep = 1024;

inline constexpr std::chrono::milliseconds kForever = engine::Sleeper::kForever;

/// Repeats `attempt` until it returns a value other than -FI_EAGAIN, or until `timeout` milliseconds have
/// passed. A negative timeout means no limit, and 0 means one attempt. `arm(sleeper)` returns how long the
/// thread can safely sleep. It returns kForever if the sleeper will wake as soon as another attempt may
/// succeed. If `attempt` or `arm` throws, wait_until() returns a negative libfabric error. A signal does not
/// end the wait, because debuggers and job control send signals, and applications would mistake an early
/// return for a failure. `waited`: a Progress or an EventWaitSet, which has the sleeper.
template <typename Waited, typename Attempt, typename Arm>
ssize_t wait_until(Waited& waited, int timeout, Attempt&& attempt, Arm&& arm) {
  ssize_t result = guarded(attempt);
  if (timeout == 0 || result != -FI_EAGAIN) return result;
  Platform& platform = waited.platform();
  Clock& clock = platform.clock();
  Time now = clock.now();
  const Time end = timeout < 0 ? kNever : now + std::chrono::milliseconds(timeout);
  const Time sleep_from = now + kSpinBeforeSleep;
  engine::Sleeper* sleep_on = nullptr;
  for (unsigned spins = 1; now < end; ++spins, now = clock.now()) {
    std::chrono::milliseconds safe = 0ms;
    const auto prepare = [&]() -> ssize_t {
      if (now >= sleep_from && sleep_on == nullptr) sleep_on = waited.sleeper();
      if (sleep_on != nullptr) safe = arm(*sleep_on);
      return 0;
    };
    if (const ssize_t error = guarded(prepare); error != 0) return error;
    if (safe > 0ms) {
      const auto left = end == kNever ? kForever : std::chrono::ceil<std::chrono::milliseconds>(end - now);
      sleep_on->wait(std::min(safe, left));
    }
    result = guarded(attempt);  // if sleeping was not safe, something may already have arrived
    if (result != -FI_EAGAIN) return result;
    if (safe > 0ms) continue;
    if (spins % kSpinsPerSleep == 0) {
      platform.sleep_shortest();
    } else if (spins > kSpinsBeforeYield) {
      platform.yield_processor();
    }
  }
  return result;
}

}  // namespace cluster::api
