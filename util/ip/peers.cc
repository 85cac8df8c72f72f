#include "peers.h"

#include <algorithm>

namespace cluster::ip {

Peer& Peers::add(const std::string& name, const std::string& node_address, fi_addr_t number) {
  Peer& peer = all_.emplace_back();
  peer.name = name;
  peer.node_address = node_address;
  peer.number = number;
  return peer;
}

bool Peers::has(const std::string& node_address) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const Peer& peer) { return peer.node_address == node_address; });
}

const Peer* Peers::assign(Peer& peer, std::span<const Address> addresses) {
  for (const Address& address : peer.addresses) owners_.erase(address);
  peer.addresses.clear();
  const Peer* conflict = nullptr;
  for (const Address& address : addresses) {
    const auto [found, added] = owners_.try_emplace(address, &peer);
    if (added) {
      peer.addresses.push_back(address);
    } else {
      conflict = found->second;
    }
  }
  return conflict;
}

}  // namespace cluster::ip
