// What the objects of this folder share: the endpoint's link, its identity, and the way from a peer to what the network knows
// of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "link/link.h"
#include "link/process_probe.h"
#include "multipath/address_pairing.h"
#include "network/endpoint_roster.h"
#include "network/remote_peer.h"
#include "transport/engine_settings.h"
#include "transport/peer_reach.h"
#include "transport/peer_table.h"
#include "transport/transport.h"

namespace cluster::network {

using transport::EngineSettings;
using transport::PeerReach;
using transport::PeerTable;

struct NetworkParts {
  const Environment& environment;
  const EngineSettings& settings;
  const SocketAddress& name;  ///< of this endpoint
  std::uint64_t epoch;
  link::Link* link;
  const std::vector<multipath::Rail>& rails;
  link::ProcessProbe* probe;                            ///< null: silence has to be judged alone
  const std::shared_ptr<const EndpointRoster>& roster;  ///< null: this endpoint is alone in its process
  transport::Transport& transport;
  bool datagrams = false;  ///< an endpoint of datagrams: there are no sessions

  /// To an address of which nothing is known but the subnet.
  link::Path path_to(const SocketAddress& address) const {
    return {address, {}, false, multipath::rail_towards(rails, address)};
  }
  /// What this transport keeps about the peer; null if there is nothing, or no peer.
  RemotePeer* find(const Peer* peer) const {
    return peer != nullptr ? static_cast<RemotePeer*>(peer->parts[transport.slot()].get()) : nullptr;
  }
  RemotePeer* find(const Peer& peer) const { return find(&peer); }
  /// The same, made if it is not there yet.
  RemotePeer& of(Peer& peer) const {
    std::unique_ptr<transport::TransportPeer>& part = peer.parts[transport.slot()];
    if (part == nullptr) part = std::make_unique<RemotePeer>(peer);
    return static_cast<RemotePeer&>(*part);
  }
};

}  // namespace cluster::network
