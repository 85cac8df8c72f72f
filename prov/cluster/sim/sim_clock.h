// The clock of one host: simulated time as that host sees it. Hosts booted at different moments, and
// a host that was suspended finds its clock ahead of where it left it.
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
  /// The moment in simulated time at which this clock will show `shown`.
  Time when(Time shown) const { return shown == kNever ? kNever : shown - ahead_; }

 private:
  const EventQueue& event_queue_;
  Duration ahead_;
  bool jumped_ = false;
};

}  // namespace cluster::sim
