// What an engine needs from outside: a clock, random numbers, a log, counters. Built in provider/ from the
// operating system, in tests and in the simulator from values, and handed down by constructor.
#pragma once

#include <cstdint>

#include "base/biased_lock.h"
#include "base/counters.h"
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
  /// A free-running counter of about one per nanosecond, which may jump: for intervals, where now() is too
  /// expensive.
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

}  // namespace cluster
