// Objects to sleep on. A WaitSet is an epoll set of descriptors. Its own descriptor is readable as soon as a
// descriptor of the set is. So a WaitSet can be part of another set or of an application's select(). All
// events are level-triggered: an event that has not been handled wakes the thread again. An Alarm is readable
// from a set time on. A Signal is readable while it is raised.
//
// An endpoint on which no thread sleeps needs none of these objects, so an endpoint creates each of them on
// first use. Several threads may use the same WaitSet or Signal at once, but not the same Alarm.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/lock.h"
#include "base/units.h"
#include "os/descriptor.h"

namespace cluster::os {

class WaitSet {
 public:
  /// A descriptor that is ready. `owner`: the pointer that was passed to add().
  struct Event {
    void* owner = nullptr;
    bool trouble = false;  ///< there was an error, or the other end has closed; there may also be input
  };
  enum class Wake { event, timeout };  ///< sleep() also returns `event` after a POSIX signal to the thread

  /// Returns null if the process has no free descriptor.
  static std::unique_ptr<WaitSet> open();

  int descriptor() const { return set_.number(); }
  bool add(int descriptor, void* owner);
  /// Must be called before the descriptor is closed. Otherwise, if a forked child has a copy of the
  /// descriptor, the kernel would keep the descriptor in the set.
  void remove(int descriptor);
  /// Writes the events that are ready now to `events`, and returns their number. Never waits.
  std::size_t collect(std::span<Event> events) const;
  /// Sleeps until a descriptor is ready, but at most for `limit`. Without a limit, the thread may sleep
  /// forever.
  Wake sleep(std::optional<std::chrono::milliseconds> limit) const;

 private:
  explicit WaitSet(Descriptor set) : set_(std::move(set)) {}

  Descriptor set_;
};

/// A timer of the monotonic clock (SystemClock).
class Alarm {
 public:
  static std::unique_ptr<Alarm> open();
  int descriptor() const { return timer_.number(); }
  /// Makes the alarm readable from `when` on, until the next call. With kNever it is never readable. With a
  /// time in the past it is readable at once.
  void set(Time when);
  /// Like set(), but the alarm may be readable once before `when`. Some deadlines move to a later time with
  /// each message. For such a deadline, this function makes a system call only after the deadline that was
  /// set last has passed, and not for each message. In a virtual machine this also saves an exit to the
  /// hypervisor for each message.
  void set_lazily(Time when, Time now) {
    if (set_ <= now || set_ > when) set(when);
  }

 private:
  explicit Alarm(Descriptor timer) : timer_(std::move(timer)) {}

  Descriptor timer_;
  Time set_ = kNever;
};

/// A flag with a descriptor. raise() and lower() make a system call only if the state changes.
class Signal {
 public:
  static std::unique_ptr<Signal> open();
  int descriptor() const { return event_.number(); }
  void raise();
  void lower();

 private:
  explicit Signal(Descriptor event) : event_(std::move(event)) {}

  Descriptor event_;
  SpinLock lock_;
  bool raised_ = false;
};

// The functions below are for a polling loop that shares its processor and has found no work for a while.
// Yielding alone is not enough. On some kernels (for example 6.18), threads that only yield keep all other
// threads off a processor for seconds. The other threads include kernel threads and the thread that the loop
// waits for. A sleep, however short, releases the processor.

/// Calls sleep_shortest() if `times` is a multiple of `times_per_sleep`, and otherwise yields. `times`: a
/// number that the caller increments with each call.
void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep);

/// Yields once. Returns the time, in ticks, for which other threads had the processor. The result includes
/// some hundred nanoseconds for the call itself.
std::uint64_t timed_yield();

/// Sleeps for the shortest possible time: about 50 us, if the thread has the kernel's default timer slack.
void sleep_shortest();
/// Like sleep_shortest(), but a cancelled thread may end during the sleep (cancellation.h).
void sleep_shortest_cancellable();

}  // namespace cluster::os
