// What an engine needs from the world: time, chance, a place to complain. Built in provider/ from
// the operating system and in tests and simulation from values, and handed down by constructor.
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
  /// Monotonic; read by engine/ when it has looked at the network, and passed down from there.
  virtual Time now() = 0;
  /// What the kernel writes on what arrives (wall clock) is ahead of now() by so much. May jump, if somebody
  /// sets the time.
  virtual Duration realtime_offset() { return Duration::zero(); }
  /// Counts on by itself, about one a nanosecond, and may jump: for rhythms, where now() is too dear.
  virtual std::uint64_t ticks() { return static_cast<std::uint64_t>(now().time_since_epoch().count()); }
};

class Random {
 public:
  virtual ~Random() = default;
  /// 64 unpredictable bits (session identities must not be guessable by a stranger on the wire).
  virtual std::uint64_t next() = 0;
};

/// References only: whoever builds the environment outlives every engine in it.
struct Environment {
  Clock& clock;
  Random& random;
  Log& log;
  Counters& counters;
  ThreadFence fence = nullptr;  ///< for locks; null: they do without
};

}  // namespace cluster
