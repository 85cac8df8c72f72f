// How late the turns of an endpoint come. A timer that goes off long after it was due shows that the process has waited
// for a processor. Where processes crowd on one node they mostly crowd on the others too, so an answer takes
// several such delays. Without this estimate a hundred processes on two processors would spend their time on retransmitting what lies
// unread at the others.
//
// Delays below kSlice come from the scheduler, or from a progress thread that looks every 10 ms, and do not count. A single delay,
// however long, may be a stop of the process: each observation raises the estimate to at most twice its value plus kFirst. The estimate
// falls when timers go off sooner, and with time.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cluster::reliability {

class TurnDelay {
 public:
  /// A timer that was due then goes off now.
  void observe(Time now, Time due) {
    const Duration late = now - due < kSlice ? Duration{} : now - due;
    const Duration before = get(now);
    delay_ =
        late > before ? std::min({late, 2 * before + kFirst, kDelayMax}) : before - (before - late) / kFall;
    observed_at_ = now;
  }
  Duration get(Time now) const {
    if (delay_ == Duration{}) return {};  // asked for with each frame
    const Duration left = kMemory - std::clamp(now - observed_at_, Duration{}, kMemory);
    return delay_ * (left / 1ms) / (kMemory / 1ms);
  }

  /// Nothing waits for late turns from now on, whatever comes.
  void disregard() { disregarded_ = true; }
  bool disregarded() const { return disregarded_; }

  /// How long an answer may take at least before it is missed, in delays: a call and the answer wait for a turn each.
  static constexpr int kTurnsPerAnswer = 3;

 private:
  static constexpr Duration kSlice = 12ms;
  static constexpr Duration kFirst = 50ms;
  static constexpr Duration kDelayMax = 4s;
  static constexpr int kFall = 8;
  static constexpr Duration kMemory = 16s;

  bool disregarded_ = false;
  Duration delay_{};
  Time observed_at_{};
};

}  // namespace cluster::reliability
