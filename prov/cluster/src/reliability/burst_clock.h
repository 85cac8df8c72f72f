// How transmit() learns when the next burst leaves: the caller lends it the source of
// time for the length of the call. Frames must be dated when they go: had the thread lost the processor
// between two bursts, a date of the first one would make the round trip look as long as the wait.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

class BurstClock {
 public:
  /// All bursts are dated alike.
  BurstClock() = default;
  /// `source.now()` gives the time.
  template <typename Source>
  explicit BurstClock(Source& source)
      : source_(&source), read_([](void* object) -> Time { return static_cast<Source*>(object)->now(); }) {}

  /// The time, or `before` if there is nothing to ask.
  Time now(Time before) const { return read_ == nullptr ? before : read_(source_); }

 private:
  void* source_ = nullptr;
  Time (*read_)(void*) = nullptr;
};

}  // namespace cluster::reliability
