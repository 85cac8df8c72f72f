// A poll set (fi_poll) says which of its members, queues and counters, have something to read. libfabric 2.0
// has deprecated poll sets.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>
#include <span>
#include <vector>

#include "api/domain.h"
#include "api/poll_backoff.h"

namespace cluster::api {

class PollSet : public fid_poll, public RefCounted {
 public:
  using Handle = fid_poll;

  static int open(Domain& domain, const fi_poll_attr* attributes, fid_poll** handle, void* context);
  ~PollSet();

  /// Makes progress on all members. Writes the contexts of members that have events, at most `count` of them.
  /// Returns how many contexts it has written.
  int poll(void** contexts, int count);
  int add(struct fid* object, std::uint64_t flags);
  int remove(struct fid* object, std::uint64_t flags);

 private:
  explicit PollSet(Domain& domain);
  int collect(std::span<void*> contexts);

  std::mutex mutex_;
  std::vector<struct fid*> members_;  ///< guarded by mutex_; the set holds a reference to each
  PollBackoff backoff_;
  Ref<Domain> domain_;
  InheritedFid inherited_fid_{fid};
};

}  // namespace cluster::api
