// Things to sleep on. A WaitSet is an epoll set of descriptors. It is readable itself as soon as one of them
// is, so one set can stand in another, or in an application's select. Everything is level-triggered: an event
// that nobody has dealt with wakes again. An Alarm is readable from a set time on, a Signal once it is
// raised.
//
// An endpoint that is only polled needs none of them, so each is made on first use. Several threads may call
// at once, except on one Alarm.
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
  /// Something that is ready. `owner` is what add() was given.
  struct Event {
    void* owner = nullptr;
    bool trouble = false;  ///< an error, or the other end is gone; perhaps beside input
  };
  enum class Wake { event, timeout };  ///< event: also after a signal to the thread

  /// Returns null if no descriptor is left.
  static std::unique_ptr<WaitSet> open();

  int descriptor() const { return set_.number(); }
  bool add(int descriptor, void* owner);
  /// Call it before the descriptor is closed: a forked child may hold a copy that lives on.
  void remove(int descriptor);
  /// Writes what is ready now, and returns how many events. Never waits.
  std::size_t collect(std::span<Event> events) const;
  /// Sleeps until something is ready, at most `limit`; without a limit, for ever.
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
  /// Makes the alarm readable from `when` on, until it is set again. With kNever it is never readable; with a
  /// time in the past it is readable at once.
  void set(Time when);
  /// The same, but the alarm may go off earlier, once. A deadline that moves on with each message then costs
  /// a system call only when an earlier deadline passes, and not for each message. In a virtual machine it
  /// also saves an exit each time.
  void set_lazily(Time when, Time now) {
    if (set_ <= now || set_ > when) set(when);
  }

 private:
  explicit Alarm(Descriptor timer) : timer_(std::move(timer)) {}

  Descriptor timer_;
  Time set_ = kNever;
};

/// Raising and lowering cost a system call only when the state changes.
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

// For a loop that shares its processor and has found nothing for a while. Yielding alone is not enough. On
// some kernels (seen with 6.18), threads that only yield keep all others from a processor for seconds. These
// include the thread for which they wait, and threads of the kernel. A sleep, however short, releases the
// processor.

/// Sleeps as sleep_shortest() does if `times`, which the caller counts, is a multiple of `times_per_sleep`.
/// Otherwise yields.
void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep);

/// Yields once. Returns, in ticks, for how long others had the processor; the call itself takes some hundred
/// nanoseconds of this.
std::uint64_t timed_yield();

/// Sleeps for the shortest time that the kernel has, some 50 us.
void sleep_shortest();
/// The same, but a cancelled thread may end here (cancellation.h).
void sleep_shortest_cancellable();

}  // namespace cluster::os
