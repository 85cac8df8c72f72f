// A counter of successful and failed operations. Some programs use counters and read no queues. So every read
// of a counter makes progress on the endpoints to which the counter is bound.
#pragma once

#include <rdma/fi_eq.h>

#include "api/domain.h"
#include "api/event_wait_set.h"
#include "api/poll_backoff.h"
#include "api/progress.h"
#include "protocol/completion.h"

namespace cluster::api {

class Cntr : public fid_cntr, public RefCounted {
 public:
  using Handle = fid_cntr;

  ~Cntr();
  static int open(Domain& domain, const fi_cntr_attr* attributes, fid_cntr** handle, void* context);

  /// Waits until the value reaches `threshold`, an error is counted, or `timeout` milliseconds have passed.
  /// Returns 0, -FI_EAVAIL or -FI_ETIMEDOUT.
  int wait(std::uint64_t threshold, int timeout);
  std::uint64_t value();
  std::uint64_t errors();
  /// Implements fi_trywait. Returns 0 if the descriptor is armed. Then the application can sleep on it.
  /// Returns -FI_EAGAIN if the counter may have changed since the last read.
  int arm();

  /// Makes progress. Returns true if the counter has changed since the last read, except by fi_cntr_set and
  /// fi_cntr_seterr.
  bool has_events();
  /// Called before fi_cntr_set and fi_cntr_seterr set the counter. The application knows the value that it
  /// sets, so only later changes are events.
  void know_value(std::uint64_t value) { value_read_.store(value, std::memory_order_relaxed); }
  void know_errors(std::uint64_t errors) { errors_read_.store(errors, std::memory_order_relaxed); }

  protocol::Counter& counter() { return counter_; }
  Progress& progress() { return progress_; }
  Domain& domain() { return *domain_; }
  /// Called before deferred work may change the counter: from now on each read of the counter makes progress
  /// on all endpoints of the domain.
  void join_work();

 private:
  Cntr(Domain& domain, fi_wait_obj wait_object, void* context);
  void progress_endpoints() noexcept;
  bool unread() const;
  std::uint64_t record_read(std::uint64_t value, std::atomic<std::uint64_t>& last_read);

  protocol::Counter counter_;
  Progress progress_;
  std::atomic<std::uint64_t> value_read_{0};  ///< the value that the application has read last
  std::atomic<std::uint64_t> errors_read_{0};
  PollBackoff backoff_;
  std::atomic<bool> joins_work_{false};
  Ref<Domain> domain_;
  WaitSetMembership membership_;
  InheritedFid inherited_fid_{fid};
};

}  // namespace cluster::api
