// Says whether a flow is alive, or why it has ended. The objects of the flow share one FlowStatus. Any of
// them can end the flow, and the application learns the first cause.
#pragma once

#include "base/status.h"

namespace cluster::reliability {

class FlowStatus {
 public:
  bool alive() const { return cause_ == Status::ok; }
  Status cause() const { return cause_; }
  /// Ends the flow, unless `cause` is `ok`. If the flow has already ended, it keeps its first cause.
  void end(Status cause) {
    if (alive()) cause_ = cause;
  }

 private:
  Status cause_ = Status::ok;
};

}  // namespace cluster::reliability
