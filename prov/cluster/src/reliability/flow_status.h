// Whether a flow is alive and, once it is over, why. It is shared by the objects of the flow: each may end it
// for a reason of its own, and the first reason is what the application learns.
#pragma once

#include "base/status.h"

namespace cluster::reliability {

class FlowStatus {
 public:
  bool alive() const { return cause_ == Status::ok; }
  Status cause() const { return cause_; }
  /// The first cause stays; `ok` is none.
  void end(Status cause) {
    if (alive()) cause_ = cause;
  }

 private:
  Status cause_ = Status::ok;
};

}  // namespace cluster::reliability
