// A wait set (fi_wait). A thread that waits on it waits for several queues and counters, the members. The
// application opens each member with FI_WAIT_SET and names the wait set. libfabric 2.0 has deprecated wait
// sets.
//
// Each member has a sleeper of its own, as with FI_WAIT_FD. The sleeper of the set contains the descriptors
// of its members' sleepers.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>
#include <vector>

#include "api/fabric.h"
#include "api/progress.h"

namespace cluster::api {

class EventWaitSet : public fid_wait, public RefCounted {
 public:
  using Handle = fid_wait;

  static int open(Fabric& fabric, const fi_wait_attr* attributes, fid_wait** handle, void* context);

  /// Waits until a member has an event. Returns 0, or -FI_ETIMEDOUT after `timeout` milliseconds.
  int wait(int timeout);
  /// Implements fi_trywait. Returns 0 if the descriptors of all members are armed.
  int arm();
  int control(int command, void* argument);

  void add(struct fid& member, const engine::Sleeper& sleeper);
  void remove(const struct fid& member, const engine::Sleeper& sleeper);

  // For wait_until().
  Platform& platform() { return fabric_->platform(); }
  engine::Sleeper* sleeper() { return sleeper_.get(); }

 private:
  EventWaitSet(Fabric& fabric, std::unique_ptr<engine::Sleeper> sleeper);
  bool has_events();

  std::mutex mutex_;
  std::vector<struct fid*> members_;  ///< guarded by mutex_
  std::unique_ptr<engine::Sleeper> sleeper_;
  Ref<Fabric> fabric_;
  InheritedFid inherited_fid_{fid};
};

/// Keeps a queue or counter in the wait set that it was opened with.
class WaitSetMembership {
 public:
  WaitSetMembership() = default;
  ~WaitSetMembership();
  WaitSetMembership(const WaitSetMembership&) = delete;
  WaitSetMembership& operator=(const WaitSetMembership&) = delete;

  /// Adds `member` to `set`, if the wait object of the member is FI_WAIT_SET. Returns -FI_EMFILE if no
  /// descriptor is free.
  int join(struct fid& member, Progress& progress, fid_wait* set);

 private:
  Ref<EventWaitSet> set_;
  struct fid* member_ = nullptr;
  engine::Sleeper* sleeper_ = nullptr;
};

}  // namespace cluster::api
