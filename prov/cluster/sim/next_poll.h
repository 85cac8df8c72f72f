// When a host polls next. An earlier time replaces a later one. The event that was planned for the later
// time still happens, but begin() recognises it by its number. While the host is busy it does not poll.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/event_queue.h"

namespace cluster::sim {

class NextPoll {
 public:
  /// Makes the host poll at `at` or earlier, but not while it is busy.
  void move_to(Time at, EventQueue& events, EventHandler& host) {
    at = std::max({at, busy_until_, events.now()});
    if (at >= at_) return;
    at_ = at;
    events.plan(at, host, ++number_);
  }
  /// The event with this number happens. Returns false if an earlier poll has replaced it.
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
