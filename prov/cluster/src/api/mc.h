// What an endpoint has joined (fi_join), each a fid_mc: a multicast group, or a team of collective operations.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>

#include <cstdint>

#include "api/endpoint.h"
#include "collective/collectives.h"

namespace cluster::api {

/// A multicast group. Its fi_addr is the destination of messages to the group. Closing it leaves the group; messages that were sent
/// before still reach the members.
class Mc : public fid_mc, public RefCounted {
 public:
  using Handle = fid_mc;

  /// The endpoint must be enabled.
  static int join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** handle,
                  void* context);
  ~Mc();

 private:
  Mc(Endpoint& endpoint, void* context);

  Ref<Endpoint> endpoint_;
};

/// A team, as fi_join_collective returns it. Its fi_addr, by which collective calls name the team, is the identity of the team.
class CollectiveMc final : public fid_mc, public RefCounted, private collective::JoinListener {
 public:
  using Handle = fid_mc;

  /// fi_join with FI_COLLECTIVE: the outcome goes to the event queue.
  static int join(Endpoint& endpoint, const void* plain, std::uint64_t flags, fid_mc** handle, void* context);
  /// Aborts the operations under way. -FI_EBUSY while a peer still reads a buffer of one.
  int leave();

 private:
  CollectiveMc(Endpoint& endpoint, Eq& eq, void* context);
  void joined(Status status) override;

  Ref<Endpoint> endpoint_;
  Eq& eq_;  ///< held by the endpoint
  collective::Team* team_ = nullptr;
};

}  // namespace cluster::api
