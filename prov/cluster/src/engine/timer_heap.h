// Who wants its turn when: one timer per peer, the earliest in front (a heap), so that a turn looks only at
// those whose time has come, however many there are. Moving a timer costs a few steps and no memory.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace cluster::engine {

struct Timer {
  Time at = kNever;       ///< kNever: not planned
  std::size_t place = 0;  ///< in the heap, while it is planned
  void* owner = nullptr;
};

class TimerHeap {
 public:
  /// The timer goes off at `at` or, if it was planned for an earlier moment, then.
  void plan(Timer& timer, Time at);
  void cancel(Timer& timer);
  /// When the next one goes off; kNever if none will.
  Time next() const { return heap_.empty() ? kNever : heap_.front()->at; }
  /// One that is due, which is not planned any more; null if there is none.
  Timer* due(Time now);
  std::size_t planned() const { return heap_.size(); }

 private:
  void put(Timer* timer, std::size_t place);
  void rise(Timer* timer, std::size_t place);
  void sink(Timer* timer, std::size_t place);

  std::vector<Timer*> heap_;
};

}  // namespace cluster::engine
