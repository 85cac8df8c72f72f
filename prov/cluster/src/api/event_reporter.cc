#include "api/event_reporter.h"

#include <netinet/in.h>
#include <rdma/fi_ext_cluster.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "api/sockaddr_io.h"

namespace cluster::api {

void EventReporter::peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) {
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
  eq_.report(FI_SHUTDOWN, event.data(), event.size());  // a full queue drops it
}

void EventReporter::add(fid_mc& group) {
  const std::lock_guard guard(lock_);
  const auto [place, fresh] = groups_.try_emplace(group.fi_addr, &group);
  if (fresh) return;
  place->second = &group;
  report(group);
}

void EventReporter::remove(const fid_mc& group) {
  const std::lock_guard guard(lock_);
  groups_.erase(group.fi_addr);
}

void EventReporter::group_joined(std::uint64_t group) {
  const std::lock_guard guard(lock_);
  const auto [place, early] = groups_.try_emplace(group, nullptr);
  if (!early) report(*place->second);
}

void EventReporter::report(fid_mc& group) {
  const fi_eq_entry entry{&group.fid, group.fid.context, 0};
  eq_.report(FI_JOIN_COMPLETE, &entry, sizeof entry);
}

}  // namespace cluster::api
