#include "sim/timetable.h"

#include <algorithm>

namespace cluster::sim {

void Timetable::plan(Time at, Actor& actor, std::uint64_t note) {
  entries_.push_back({std::max(at, now_), order_++, &actor, note});
  std::push_heap(entries_.begin(), entries_.end());
}

void Timetable::step() {
  std::pop_heap(entries_.begin(), entries_.end());
  const Entry entry = entries_.back();
  entries_.pop_back();
  now_ = entry.at;
  ++steps_;
  note(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  note(entry.note);
  entry.actor->happen(entry.note);
}

}  // namespace cluster::sim
