// An engine gets these services from outside: a clock, random numbers, a log, counters and a fence. os/ and
// provider/ implement the services with the operating system. Tests and the simulator use their own
// implementations. Objects get the environment as an argument of their constructors.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/counters.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/units.h"

namespace cluster {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns the monotonic time. Most objects do not call this function, but get the time as an argument
  /// (base/units.h).
  virtual Time now() = 0;
  /// Returns CLOCK_REALTIME minus now(). The difference is needed because the kernel takes the timestamps of
  /// arriving frames from CLOCK_REALTIME. The difference jumps when somebody sets the system time.
  virtual Duration realtime_offset() { return Duration::zero(); }
  /// Returns a counter that advances by one to a few ticks per nanosecond, and can jump. Callers measure
  /// intervals with this counter where now() is too expensive.
  virtual std::uint64_t ticks() { return static_cast<std::uint64_t>(now().time_since_epoch().count()); }
};

class Random {
 public:
  virtual ~Random() = default;
  /// Returns 64 unpredictable bits. Session numbers are derived from them, and other hosts must not be able
  /// to guess session numbers.
  virtual std::uint64_t next() = 0;
};

/// Refers to the services. The services must outlive every engine that uses them.
struct Environment {
  Clock& clock;
  Random& random;
  Log& log;
  Counters& counters;
  ThreadFence fence = nullptr;  ///< for BiasedLock; may be null
};

/// Wakes threads that sleep until an object has produced something, such as a completion. The object gets its
/// Waker as an argument, because only os/ can let threads sleep and wake them.
class Waker {
 public:
  virtual ~Waker() = default;
  /// Wakes sleeping threads, and keeps all threads from sleeping until clear() is called.
  virtual void wake() = 0;
  virtual void clear() = 0;
};

/// An engine does this work after its turns. The engine does not hold its lock during this work, because the
/// work may take the locks of other engines.
class AfterTurn {
 public:
  virtual ~AfterTurn() = default;
  /// Does the work that is due. `may_wait`: false if the thread must not wait for the lock of an engine. In
  /// this case, work that would have to wait stays due.
  virtual void run(bool may_wait) noexcept = 0;
  bool due() const { return due_.load(std::memory_order_acquire); }

 protected:
  void set_due(bool due) { due_.store(due, std::memory_order_release); }

 private:
  std::atomic<bool> due_{false};
};

}  // namespace cluster
