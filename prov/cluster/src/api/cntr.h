// A counter of successes and errors. Programs that count do not read queues, so every read of a counter makes
// progress on its endpoints.
#pragma once

#include <rdma/fi_eq.h>

#include <memory>

#include "api/domain.h"
#include "api/poll_backoff.h"
#include "api/progress.h"
#include "base/lock.h"
#include "protocol/completion.h"

namespace cluster::api {

class Cntr : public fid_cntr, public RefCounted {
 public:
  using Handle = fid_cntr;

  static int open(Domain& domain, const fi_cntr_attr* attributes, fid_cntr** handle, void* context);

  /// Until the value reaches `threshold`, an error is counted, or `timeout` milliseconds have passed.
  int wait(std::uint64_t threshold, int timeout);
  /// fi_cntr_read, fi_cntr_readerr.
  std::uint64_t value();
  std::uint64_t errors();
  /// fi_trywait: 0 if the descriptor is armed; -FI_EAGAIN if the counter may have changed since it was read.
  int arm();

  protocol::Counter& counter() { return counter_; }
  Progress& progress() { return progress_; }
  Domain& domain() { return *domain_; }
  fi_wait_obj wait_object() const { return wait_object_; }
  /// Null if waiting threads poll instead of sleeping.
  engine::Sleeper* sleeper() { return wait_object_ == FI_WAIT_YIELD ? nullptr : progress_.sleeper(); }

 private:
  Cntr(Domain& domain, fi_wait_obj wait_object, void* context);
  void progress_endpoints() noexcept;
  engine::Sleeper* sleeper_of_others();
  std::uint64_t record_read(std::uint64_t value, std::atomic<std::uint64_t>& last_read);

  protocol::Counter counter_;
  Progress progress_;
  std::atomic<std::uint64_t> value_read_{
      0};  ///< the application has read this value, and need not be woken for it
  std::atomic<std::uint64_t> errors_read_{0};
  PollBackoff backoff_;
  SpinLock others_lock_;
  std::unique_ptr<engine::Sleeper> others_;  ///< for all threads in wait() but one; nothing ever wakes it
  Ref<Domain> domain_;
  InheritedFid inherited_fid_{fid};
  fi_wait_obj wait_object_;
};

}  // namespace cluster::api
