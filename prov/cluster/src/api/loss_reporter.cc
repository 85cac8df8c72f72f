#include "api/loss_reporter.h"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_ext_cluster.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "api/errno_map.h"
#include "api/sockaddr_io.h"

namespace cluster::api {

void LossReporter::peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) {
  fi_cluster_peer_lost lost{};
  lost.peer = handle;
  lost.err = fi_errno_of(cause);
  lost.prov_errno = static_cast<int>(cause);
  sockaddr_storage address;
  lost.address_size = static_cast<std::uint32_t>(peer.to(address));
  static_assert(sizeof lost.address == sizeof(sockaddr_in6));
  std::memcpy(lost.address, &address, lost.address_size);
  std::snprintf(lost.cause, sizeof lost.cause, "%s", describe(cause));
  std::array<std::byte, sizeof(fi_eq_cm_entry) + sizeof lost> event{};
  std::memcpy(event.data() + offsetof(fi_eq_cm_entry, fid), &endpoint_, sizeof endpoint_);
  std::memcpy(event.data() + sizeof(fi_eq_cm_entry), &lost, sizeof lost);
  eq_.write(FI_SHUTDOWN, event.data(), event.size(), 0);  // one that is full has enough to tell
}

}  // namespace cluster::api
