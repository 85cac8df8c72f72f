// A counter of successes and errors. Programs that count do not read queues: every look at a
// counter makes its endpoints go on.
#pragma once

#include <rdma/fi_eq.h>

#include "api/domain.h"
#include "api/progress.h"
#include "protocol/completion.h"

namespace cluster::api {

class Cntr : public fid_cntr {
 public:
  using Handle = fid_cntr;

  static int open(Domain& domain, const fi_cntr_attr* attributes, fid_cntr** handle, void* context);

  /// Until the value reaches `threshold`, an error is counted, or `timeout` milliseconds have passed.
  int wait(std::uint64_t threshold, int timeout);

  protocol::Counter& counter() { return counter_; }
  Progress& progress() { return progress_; }
  Domain& domain() { return *domain_; }
  Users& users() { return users_; }
  fi_wait_obj wait_object() const { return wait_object_; }

 private:
  Cntr(Domain& domain, fi_wait_obj wait_object, void* context);

  protocol::Counter counter_;
  Progress progress_;
  Use<Domain> domain_;
  Users users_;
  fi_wait_obj wait_object_;
};

}  // namespace cluster::api
