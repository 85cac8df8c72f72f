#include "network/timer_heap.h"

namespace cluster::network {

void TimerHeap::put(Timer* timer, std::size_t index) {
  heap_[index] = timer;
  timer->index = index;
}

void TimerHeap::rise(Timer* timer, std::size_t index) {
  for (; index > 0 && timer->at < heap_[(index - 1) / 2]->at; index = (index - 1) / 2) {
    put(heap_[(index - 1) / 2], index);
  }
  put(timer, index);
}

void TimerHeap::sink(Timer* timer, std::size_t index) {
  for (std::size_t below = 2 * index + 1; below < heap_.size(); below = 2 * index + 1) {
    if (below + 1 < heap_.size() && heap_[below + 1]->at < heap_[below]->at) ++below;
    if (timer->at <= heap_[below]->at) break;
    put(heap_[below], index);
    index = below;
  }
  put(timer, index);
}

void TimerHeap::schedule(Timer& timer, Time at) {
  if (at >= timer.at) return;
  const bool scheduled = timer.at != kNever;
  if (!scheduled) heap_.push_back(&timer);
  timer.at = at;
  rise(&timer, scheduled ? timer.index : heap_.size() - 1);
}

void TimerHeap::cancel(Timer& timer) {
  if (timer.at == kNever) return;
  timer.at = kNever;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  const std::size_t index = timer.index;
  const bool earlier = index > 0 && last->at < heap_[(index - 1) / 2]->at;
  earlier ? rise(last, index) : sink(last, index);
}

Timer* TimerHeap::pop_due(Time now) {
  if (next() > now || heap_.empty()) return nullptr;
  Timer* timer = heap_.front();
  cancel(*timer);
  return timer;
}

}  // namespace cluster::network
