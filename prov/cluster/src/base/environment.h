// What an engine needs from outside: a clock, random numbers, a log, counters. provider/ builds it from the operating system; tests
// and the simulator build it from values. Constructors hand it down.
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
  /// Monotonic; read by engine/ after it has polled the network, and passed down from there.
  virtual Time now() = 0;
  /// CLOCK_REALTIME, with which the kernel stamps arrivals, minus now(). Jumps when the time is set.
  virtual Duration realtime_offset() { return Duration::zero(); }
  /// A free-running counter of about one per nanosecond, which may jump. For intervals, where now() is too expensive.
  virtual std::uint64_t ticks() { return static_cast<std::uint64_t>(now().time_since_epoch().count()); }
};

class Random {
 public:
  virtual ~Random() = default;
  /// 64 unpredictable bits (session identities must not be guessable by other hosts).
  virtual std::uint64_t next() = 0;
};

/// References only: what they refer to outlives every engine built with them.
struct Environment {
  Clock& clock;
  Random& random;
  Log& log;
  Counters& counters;
  ThreadFence fence = nullptr;  ///< for BiasedLock; may be null
};

/// How an object that produces something wakes the threads that sleep until there is some. An argument, like the clock, since only the
/// operating system can make a thread sleep.
class Waker {
 public:
  virtual ~Waker() = default;
  /// Wakes sleeping threads, and keeps all threads from sleeping until clear() is called.
  virtual void wake() = 0;
  virtual void clear() = 0;
};

}  // namespace cluster
