// Things to sleep on. A WaitSet is an epoll set of descriptors. It is readable itself as soon as one of them is, so one set can stand in
// another, or in an application's select. Everything is level-triggered: an event that nobody has dealt with wakes again. An Alarm
// is readable from a moment on, a Signal once it is raised.
//
// An endpoint that is only polled needs none, so each is made on first use. Several threads may call at once, except on one Alarm.
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
  /// Something that is ready: `owner` was given when it was added.
  struct Event {
    void* owner = nullptr;
    bool trouble = false;  ///< an error, or the other end is gone; perhaps beside input
  };
  enum class Wake { event, timeout };  ///< event: a signal to the thread as well

  /// Null if no descriptor is left.
  static std::unique_ptr<WaitSet> open();

  int descriptor() const { return set_.number(); }
  bool add(int descriptor, void* owner);
  /// Call it before the descriptor is closed: a forked child may hold a copy that lives on.
  void remove(int descriptor);
  /// What is ready now. Never waits.
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
  /// Readable from `when` on, until it is set again. kNever: not at all; the past: at once.
  void set(Time when);
  /// The same, but it may go off earlier, once. A deadline that moves on with each message then costs a system call (and a virtual
  /// machine an exit) only when it would have passed, and not with each message.
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

// What a loop does that shares its processor and has found nothing for a while. Yielding alone is not enough: some kernels (seen with 6.18)
// let threads that only yield keep a processor for seconds from all others, including the thread they wait for and the
// kernel's own. A sleep, however short, releases the processor.

/// Yields. Each time that `times`, which the caller counts, is a multiple of `times_per_sleep`, it sleeps as sleep_shortest() does.
void yield_or_sleep(std::uint32_t times, std::uint32_t times_per_sleep);

/// Yields once and returns, in ticks, for how long others had the processor; some hundred nanoseconds are the call itself.
std::uint64_t timed_yield();

/// Sleeps for the shortest time that the kernel has, some 50 us.
void sleep_shortest();
/// The same where a thread that is cancelled may end (cancellation.h).
void sleep_shortest_cancellable();

}  // namespace cluster::os
