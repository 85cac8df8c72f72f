// The deadlines of all peers. The heap has one timer per peer, with the earliest at the front. A turn visits
// only timers that have expired, however large the heap is. Moving a timer takes few steps and allocates no
// memory.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace cluster::network {

struct Timer {
  Time at = kNever;       ///< kNever: not scheduled
  std::size_t index = 0;  ///< its index in the heap while it is scheduled
  void* owner = nullptr;
};

class TimerHeap {
 public:
  /// Makes the timer fire at `at`, or earlier if it was scheduled for an earlier time.
  void schedule(Timer& timer, Time at);
  void cancel(Timer& timer);
  /// Returns when the next timer fires, or kNever if no timer is scheduled.
  Time next() const { return heap_.empty() ? kNever : heap_.front()->at; }
  /// Returns a timer that has expired and removes it from the heap. Returns null if no timer has expired.
  Timer* pop_due(Time now);
  std::size_t size() const { return heap_.size(); }
  /// Allocates memory for `timers` timers, so that schedule() needs none for them.
  void reserve(std::size_t timers) { heap_.reserve(timers); }

 private:
  void put(Timer* timer, std::size_t index);
  void rise(Timer* timer, std::size_t index);
  void sink(Timer* timer, std::size_t index);

  std::vector<Timer*> heap_;
};

inline void TimerHeap::put(Timer* timer, std::size_t index) {
  heap_[index] = timer;
  timer->index = index;
}

inline void TimerHeap::rise(Timer* timer, std::size_t index) {
  for (; index > 0 && timer->at < heap_[(index - 1) / 2]->at; index = (index - 1) / 2) {
    put(heap_[(index - 1) / 2], index);
  }
  put(timer, index);
}

inline void TimerHeap::sink(Timer* timer, std::size_t index) {
  for (std::size_t below = 2 * index + 1; below < heap_.size(); below = 2 * index + 1) {
    if (below + 1 < heap_.size() && heap_[below + 1]->at < heap_[below]->at) ++below;
    if (timer->at <= heap_[below]->at) break;
    put(heap_[below], index);
    index = below;
  }
  put(timer, index);
}

inline void TimerHeap::schedule(Timer& timer, Time at) {
  if (at >= timer.at) return;
  const bool scheduled = timer.at != kNever;
  if (!scheduled) heap_.push_back(&timer);
  timer.at = at;
  rise(&timer, scheduled ? timer.index : heap_.size() - 1);
}

inline void TimerHeap::cancel(Timer& timer) {
  if (timer.at == kNever) return;
  timer.at = kNever;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  const std::size_t index = timer.index;
  const bool earlier = index > 0 && last->at < heap_[(index - 1) / 2]->at;
  earlier ? rise(last, index) : sink(last, index);
}

inline Timer* TimerHeap::pop_due(Time now) {
  if (next() > now || heap_.empty()) return nullptr;
  Timer* timer = heap_.front();
  cancel(*timer);
  return timer;
}

}  // namespace cluster::network
