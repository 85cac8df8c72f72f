// What the objects of the shared-memory transport share: the endpoint's listener, and the way from a peer to what shared
// memory knows of it.
#pragma once

#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "shm/local_listener.h"
#include "shm/local_peer.h"
#include "transport/engine_settings.h"
#include "transport/transport.h"

namespace cluster::shm {

struct ShmParts {
  const Environment& environment;
  const transport::EngineSettings& settings;
  LocalListener& listener;
  transport::Transport& transport;
  PeerEvents& events;

  /// What this transport keeps about the peer; null if there is nothing, or no peer.
  LocalPeer* find(const Peer* peer) const {
    return peer != nullptr ? static_cast<LocalPeer*>(peer->parts[transport.slot()].get()) : nullptr;
  }
  /// The same, made if it is not there yet.
  LocalPeer& of(Peer& peer) const {
    std::unique_ptr<transport::TransportPeer>& part = peer.parts[transport.slot()];
    if (part == nullptr) part = std::make_unique<LocalPeer>(peer, events);
    return static_cast<LocalPeer&>(*part);
  }
};

}  // namespace cluster::shm
