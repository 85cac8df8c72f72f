// A team that an endpoint has joined: the fid_mc of fi_join_collective. Its address, by which collective calls name
// the team, is the team's identity.
#pragma once

#include <rdma/fi_collective.h>

#include "api/endpoint.h"
#include "collective/collectives.h"

namespace cluster::api {

class CollectiveMc final : public fid_mc, public RefCounted, private collective::JoinListener {
 public:
  using Handle = fid_mc;

  /// fi_join with FI_COLLECTIVE: the outcome goes to the event queue.
  static int join(Endpoint& endpoint, const void* plain, std::uint64_t flags, fid_mc** handle, void* context);
  /// -FI_EBUSY while a peer reads a buffer of an operation under way; the others are aborted.
  int leave();

 private:
  CollectiveMc(Endpoint& endpoint, Eq& eq, void* context);
  void joined(Status status) override;

  Ref<Endpoint> endpoint_;
  Eq& eq_;  ///< held by the endpoint
  collective::Team* team_ = nullptr;
};

}  // namespace cluster::api
