// When a host polls next. An earlier moment takes the place of a later one; the event that was planned for the
// later one is known by its number, and is then overtaken. While the host is busy it does not poll.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/event_queue.h"

namespace cluster::sim {

class NextPoll {
 public:
  /// The host polls at `at` or earlier, but not while it is busy.
  void move_to(Time at, EventQueue& events, EventHandler& host) {
    at = std::max({at, busy_until_, events.now()});
    if (at >= at_) return;
    at_ = at;
    events.plan(at, host, ++number_);
  }
  /// The event of that number happens. False: it was overtaken by an earlier one.
  bool begin(std::uint64_t number) {
    if (number != number_) return false;
    at_ = kNever;
    return true;
  }
  void set_busy_until(Time until) { busy_until_ = until; }
  void cancel() {
    at_ = kNever;
    busy_until_ = Time{};
    ++number_;
  }

 private:
  Time at_ = kNever;
  Time busy_until_{};
  std::uint64_t number_ = 0;
};

}  // namespace cluster::sim
