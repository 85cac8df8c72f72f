#include "network/member_hosts.h"

#include <unordered_set>
#include <utility>
#include <vector>

namespace cluster::network {
namespace {

/// Each IP address once; none if there are more than `most`.
std::vector<SocketAddress> hosts_in(const transport::AddressTable& addresses, std::size_t most) {
  std::unordered_set<SocketAddress, SocketAddressHash> hosts;
  const transport::AddressTable::Handle end = addresses.handles_end();
  for (transport::AddressTable::Handle handle = 0; handle < end; ++handle) {
    const SocketAddress address = addresses.lookup(handle);
    if (address.empty()) continue;
    hosts.insert(address.with_port(0));
    if (hosts.size() > most) return {};
  }
  return {hosts.begin(), hosts.end()};
}

}  // namespace

void MemberHosts::review(const transport::AddressTable& addresses) {
  if (probe_ == nullptr) return;
  const std::uint64_t generation = addresses.generation();
  if (std::exchange(generation_, generation) == generation) return;
  probe_->set_members(hosts_in(addresses, link::ProcessProbe::kHostsMax));
}

}  // namespace cluster::network
