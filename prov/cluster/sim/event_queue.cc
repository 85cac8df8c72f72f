#include "sim/event_queue.h"

#include <algorithm>

namespace cluster::sim {

void EventQueue::plan(Time at, EventHandler& actor, std::uint64_t note) {
  entries_.push_back({std::max(at, now_), order_++, &actor, note});
  std::push_heap(entries_.begin(), entries_.end());
}

void EventQueue::step() {
  std::pop_heap(entries_.begin(), entries_.end());
  const Entry entry = entries_.back();
  entries_.pop_back();
  now_ = entry.at;
  ++steps_;
  note(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  note(entry.note);
  entry.actor->handle_event(entry.note);
}

}  // namespace cluster::sim
