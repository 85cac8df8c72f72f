// An Outage object describes the last outage. An outage is a period in which this node hears no other node.
// During an outage, the silence of a peer says nothing about this peer. Therefore the clocks that measure the
// silence of peers stand still. network/outage_watch.h decides when an outage begins and ends.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cluster {

class Outage {
 public:
  void begin(Time now) {
    since_ = now;
    until_ = kNever;
  }
  void end(Time now) { until_ = now; }
  bool present() const { return since_ != kNever && until_ == kNever; }
  /// Returns when the last outage began, or kNever if there was none.
  Time since() const { return since_; }
  /// Returns how long the last outage lasted. If it still lasts, returns how long it has lasted until `now`.
  Duration length(Time now) const { return within(Time::min(), now); }
  /// Returns how much of the time from `from` to `to` lies in the last outage.
  Duration within(Time from, Time to) const {
    const Time begin = std::max(from, since_);
    const Time end = std::min(to, until_);
    return begin < end ? end - begin : Duration{};
  }

 private:
  Time since_ = kNever;
  Time until_ = kNever;
};

}  // namespace cluster
