#include "engine/timer_heap.h"

namespace cluster::engine {

void TimerHeap::put(Timer* timer, std::size_t place) {
  heap_[place] = timer;
  timer->place = place;
}

void TimerHeap::rise(Timer* timer, std::size_t place) {
  for (; place > 0 && timer->at < heap_[(place - 1) / 2]->at; place = (place - 1) / 2) {
    put(heap_[(place - 1) / 2], place);
  }
  put(timer, place);
}

void TimerHeap::sink(Timer* timer, std::size_t place) {
  for (std::size_t below = 2 * place + 1; below < heap_.size(); below = 2 * place + 1) {
    if (below + 1 < heap_.size() && heap_[below + 1]->at < heap_[below]->at) ++below;
    if (timer->at <= heap_[below]->at) break;
    put(heap_[below], place);
    place = below;
  }
  put(timer, place);
}

void TimerHeap::plan(Timer& timer, Time at) {
  if (at >= timer.at) return;
  const bool planned = timer.at != kNever;
  timer.at = at;
  if (!planned) heap_.push_back(&timer);
  rise(&timer, planned ? timer.place : heap_.size() - 1);
}

void TimerHeap::cancel(Timer& timer) {
  if (timer.at == kNever) return;
  timer.at = kNever;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  const std::size_t place = timer.place;
  const bool earlier = place > 0 && last->at < heap_[(place - 1) / 2]->at;
  earlier ? rise(last, place) : sink(last, place);
}

Timer* TimerHeap::due(Time now) {
  if (next() > now || heap_.empty()) return nullptr;
  Timer* timer = heap_.front();
  cancel(*timer);
  return timer;
}

}  // namespace cluster::engine
