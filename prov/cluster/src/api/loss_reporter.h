// Puts the peers that an endpoint loses into the event queue that is bound to it: FI_SHUTDOWN events, whose entry
// has the endpoint, and behind it which peer it was and why (include/rdma/fi_ext_cluster.h).
#pragma once

#include <rdma/fi_eq.h>

#include "api/eq.h"
#include "protocol/completion.h"

namespace cluster::api {

class LossReporter final : public protocol::LossListener {
 public:
  /// Both outlive it.
  LossReporter(fid_t endpoint, Eq& eq) : endpoint_(endpoint), eq_(eq) {}
  void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) override;

 private:
  fid_t endpoint_;
  Eq& eq_;
};

}  // namespace cluster::api
