// The clock of one host: simulated time as that host sees it. Hosts booted at different moments, and
// a host that was suspended finds its clock ahead of where it left it.
#pragma once

#include "base/environment.h"
#include "sim/timetable.h"

namespace cluster::sim {

class SimClock final : public Clock {
 public:
  SimClock(const Timetable& timetable, Duration ahead) : timetable_(timetable), ahead_(ahead) {}

  Time now() override { return timetable_.now() + ahead_; }
  void jump(Duration by) {
    ahead_ += by;
    jumped_ = true;
  }
  bool has_jumped() const { return jumped_; }
  /// The moment in simulated time at which this clock will show `shown`.
  Time when(Time shown) const { return shown == kNever ? kNever : shown - ahead_; }

 private:
  const Timetable& timetable_;
  Duration ahead_;
  bool jumped_ = false;
};

}  // namespace cluster::sim
