// The clock of one host: simulated time as this host sees it. Hosts were booted at different times. A jump
// stands for the time in which the host was suspended.
#pragma once

#include "base/environment.h"
#include "sim/event_queue.h"

namespace cluster::sim {

class SimClock final : public Clock {
 public:
  SimClock(const EventQueue& event_queue, Duration ahead) : event_queue_(event_queue), ahead_(ahead) {}

  Time now() override { return event_queue_.now() + ahead_; }
  void jump(Duration by) {
    ahead_ += by;
    jumped_ = true;
  }
  bool has_jumped() const { return jumped_; }
  /// Returns the simulated time at which this clock will show `shown`.
  Time when(Time shown) const { return shown == kNever ? kNever : shown - ahead_; }

 private:
  const EventQueue& event_queue_;
  Duration ahead_;
  bool jumped_ = false;
};

}  // namespace cluster::sim
