// A multicast group that an endpoint has joined (fi_join): a fid_mc. Its fi_addr is the destination of messages to the group.
// Closing it leaves the group; messages that were sent before still reach its members.
#pragma once

#include <rdma/fi_cm.h>

#include <cstdint>

#include "api/endpoint.h"

namespace cluster::api {

class Mc : public fid_mc, public RefCounted {
 public:
  using Handle = fid_mc;

  /// fi_join of an endpoint that is enabled.
  static int join(Endpoint& endpoint, const void* address, std::uint64_t flags, fid_mc** handle,
                  void* context);
  ~Mc();

 private:
  Mc(Endpoint& endpoint, void* context);

  Ref<Endpoint> endpoint_;
};

}  // namespace cluster::api
