// Deadlines: one timer per peer, the earliest in front (a heap), so that a turn looks only at those that are
// due, however many there are. Moving a timer costs a few steps and no memory.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace cluster::network {

struct Timer {
  Time at = kNever;       ///< kNever: not scheduled
  std::size_t index = 0;  ///< in the heap, while it is scheduled
  void* owner = nullptr;
};

class TimerHeap {
 public:
  /// The timer goes off at `at` or, if it was scheduled for an earlier moment, then.
  void schedule(Timer& timer, Time at);
  void cancel(Timer& timer);
  /// When the next one goes off; kNever if none will.
  Time next() const { return heap_.empty() ? kNever : heap_.front()->at; }
  /// One that is due, which is not scheduled any more; null if there is none.
  Timer* pop_due(Time now);
  std::size_t size() const { return heap_.size(); }
  /// schedule() needs no memory as long as there are no more than so many.
  void reserve(std::size_t timers) { heap_.reserve(timers); }

 private:
  void put(Timer* timer, std::size_t index);
  void rise(Timer* timer, std::size_t index);
  void sink(Timer* timer, std::size_t index);

  std::vector<Timer*> heap_;
};

}  // namespace cluster::network
