// What the objects of this folder share: the endpoint's link, the endpoint's identity, and access to the
// RemotePeer of a peer.
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
  const SocketAddress& name;  ///< the name of this endpoint
  std::uint64_t epoch;
  link::Link* link;
  const std::vector<multipath::Rail>& rails;
  /// If this is null, the endpoint does not ask the kernels of silent peers whether their processes exist.
  link::ProcessProbe* probe;
  const std::shared_ptr<const EndpointRoster>& roster;  ///< null: the process has no other endpoint
  transport::Transport& transport;
  bool datagrams = false;  ///< this is a datagram endpoint, which has no sessions

  /// Returns a path to an address, chosen only by the address's subnet.
  link::Path path_to(const SocketAddress& address) const {
    return {address, {}, false, multipath::rail_towards(rails, address)};
  }
  /// Returns what this transport keeps about the peer, or null if `peer` is null or this transport keeps
  /// nothing.
  RemotePeer* find(const Peer* peer) const {
    return peer != nullptr ? static_cast<RemotePeer*>(peer->parts[transport.slot()].get()) : nullptr;
  }
  RemotePeer* find(const Peer& peer) const { return find(&peer); }
  /// Like find(), but creates the entry if there is none.
  RemotePeer& of(Peer& peer) const {
    std::unique_ptr<transport::TransportPeer>& part = peer.parts[transport.slot()];
    if (part == nullptr) part = std::make_unique<RemotePeer>(peer);
    return static_cast<RemotePeer&>(*part);
  }
};

}  // namespace cluster::network
