// Whether a flow is alive and, once it has ended, why. The objects of the flow share it: each may end the
// flow, and the application learns the first reason.
#pragma once

#include "base/status.h"

namespace cluster::reliability {

class FlowStatus {
 public:
  bool alive() const { return cause_ == Status::ok; }
  Status cause() const { return cause_; }
  /// Ends the flow. The first cause stays. `ok` does nothing.
  void end(Status cause) {
    if (alive()) cause_ = cause;
  }

 private:
  Status cause_ = Status::ok;
};

}  // namespace cluster::reliability
