// A peer as shared memory knows it: a ring in each direction, and how far its opening has come. It is made with the first
// attempt to reach the peer, and kept as long as the peer is.
#pragma once

#include <cstdint>
#include <memory>

#include "base/address.h"
#include "base/environment.h"
#include "base/units.h"
#include "shm/local_listener.h"
#include "shm/ring_inbox.h"
#include "transport/peer.h"
#include "transport/transport.h"
#include "transport/transport_context.h"
#include "transport/waiter.h"

namespace cluster::shm {

using transport::Peer;

struct LocalPeer;

/// Told when a descriptor of a peer is ready: its connection or its process may have ended.
class PeerEvents {
 public:
  virtual void peer_ready(LocalPeer& peer) = 0;

 protected:
  ~PeerEvents() = default;
};

struct LocalPeer final : transport::TransportPeer, transport::WakeSource {
  LocalPeer(Peer& peer, PeerEvents& listener) : common(peer), channel(peer.channel), events(listener) {}

  Peer& common;  ///< what all transports share about it
  protocol::Channel& channel;
  PeerEvents& events;
  std::unique_ptr<Outbox> outbox;  ///< towards the peer
  std::unique_ptr<Inbox> inbox;    ///< and from it
  RingInbox* ring = nullptr;       ///< the inbox, if it is a ring
  bool active = false;             ///< something has come through the inbox since the last review
  bool held = false;               ///< the next segment of the ring waits for the unexpected store
  std::uint8_t patience = 0;       ///< looks left in which a message without a receive stays in the ring
  // While the peer's queue of connections is full:
  Time connecting_since{};
  Time next_connection{};  ///< when the next attempt is due

  const SocketAddress& name() const { return common.name(); }
  void on_ready(bool) override { events.peer_ready(*this); }
};

/// What the objects of the transport share: the endpoint's listener, and the way from a peer to what shared memory knows of it.
struct ShmParts {
  const transport::TransportContext& context;
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
