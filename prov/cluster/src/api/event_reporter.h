// Puts what happens to an endpoint into its event queue: peers that it loses (FI_SHUTDOWN) and groups that it has joined
// (FI_JOIN_COMPLETE).
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>

#include <unordered_map>

#include "api/eq.h"
#include "base/lock.h"
#include "protocol/completion.h"

namespace cluster::api {

class EventReporter final : public protocol::LossListener, public protocol::GroupListener {
 public:
  /// Both outlive it.
  EventReporter(fid_t endpoint, Eq& eq) : endpoint_(endpoint), eq_(eq) {}

  /// The entry names the endpoint; behind it follow the peer and the cause (include/rdma/fi_ext_cluster.h).
  void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) override;

  /// fi_join was called. The group may have been joined already.
  void add(fid_mc& group);
  void remove(const fid_mc& group);
  /// The entry has the group and the context of fi_join.
  void group_joined(std::uint64_t group) override;

 private:
  void report(fid_mc& group);

  fid_t endpoint_;
  Eq& eq_;
  SpinLock lock_;
  std::unordered_map<std::uint64_t, fid_mc*> groups_;  ///< by address; null: joined before add()
};

}  // namespace cluster::api
