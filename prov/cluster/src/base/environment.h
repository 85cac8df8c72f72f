// What an engine needs from outside: a clock, random numbers, a log, counters. provider/ builds it from the
// operating system; tests and the simulator build it from values. Constructors hand it down.
#pragma once

#include <cstdint>

#include "base/counters.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/units.h"

namespace cluster {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns monotonic time. engine/ reads the clock after it has polled the network, and passes the time
  /// down.
  virtual Time now() = 0;
  /// Returns CLOCK_REALTIME minus now(). The kernel stamps arrivals by CLOCK_REALTIME. The offset jumps when
  /// somebody sets the system time.
  virtual Duration realtime_offset() { return Duration::zero(); }
  /// Returns a free-running counter of about one tick per nanosecond, which may jump. It measures intervals
  /// where now() is too expensive.
  virtual std::uint64_t ticks() { return static_cast<std::uint64_t>(now().time_since_epoch().count()); }
};

class Random {
 public:
  virtual ~Random() = default;
  /// Returns 64 unpredictable bits. Other hosts must not be able to guess session identities.
  virtual std::uint64_t next() = 0;
};

/// Holds references only. The objects behind them outlive every engine that is built with them.
struct Environment {
  Clock& clock;
  Random& random;
  Log& log;
  Counters& counters;
  ThreadFence fence = nullptr;  ///< for BiasedLock; may be null
};

/// Wakes the threads that sleep until an object has produced something. The object gets its Waker as an
/// argument, like the clock, because only the operating system can make a thread sleep.
class Waker {
 public:
  virtual ~Waker() = default;
  /// Wakes sleeping threads, and keeps all threads from sleeping until clear() is called.
  virtual void wake() = 0;
  virtual void clear() = 0;
};

}  // namespace cluster
