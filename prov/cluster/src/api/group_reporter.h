// Puts the groups that an endpoint has joined into the event queue that is bound to it: FI_JOIN_COMPLETE events, whose entry has
// the group and the context of fi_join.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>

#include <unordered_map>

#include "api/eq.h"
#include "base/lock.h"
#include "protocol/completion.h"

namespace cluster::api {

class GroupReporter final : public protocol::GroupListener {
 public:
  /// The queue outlives it.
  explicit GroupReporter(Eq& eq) : eq_(eq) {}
  /// Its completion may have come already.
  void add(fid_mc& group);
  void remove(const fid_mc& group);
  void group_joined(std::uint64_t group) override;

 private:
  void report(fid_mc& group);

  Eq& eq_;
  SpinLock lock_;
  std::unordered_map<std::uint64_t, fid_mc*>
      groups_;  ///< by address; null: has joined, and was not added yet
};

}  // namespace cluster::api
