// What shared memory keeps about a peer: a ring in each direction, and how far their opening has come. The
// first attempt to reach the peer creates the object, which lives as long as the peer.
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

/// Called when a descriptor of a peer is ready: the peer's connection or process may have ended.
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
  bool held = false;               ///< the next segment waits for space in the unexpected store
  std::uint8_t patience = 0;       ///< how many more looks a message without a receive stays in the ring
  // While the peer's queue of connections is full:
  Time connecting_since{};
  Time next_connection{};  ///< when the next attempt is due

  const SocketAddress& name() const { return common.name(); }
  void on_ready(bool) override { events.peer_ready(*this); }
};

/// What the objects of the transport share: the endpoint's listener, and how to find the LocalPeer of a peer.
struct ShmParts {
  const transport::TransportContext& context;
  LocalListener& listener;
  transport::Transport& transport;
  PeerEvents& events;

  /// Returns what this transport keeps about the peer. Null if there is nothing, or if `peer` is null.
  LocalPeer* find(const Peer* peer) const {
    return peer != nullptr ? static_cast<LocalPeer*>(peer->parts[transport.slot()].get()) : nullptr;
  }
  /// As find(), but creates the LocalPeer if the peer has none.
  LocalPeer& of(Peer& peer) const {
    std::unique_ptr<transport::TransportPeer>& part = peer.parts[transport.slot()];
    if (part == nullptr) part = std::make_unique<LocalPeer>(peer, events);
    return static_cast<LocalPeer&>(*part);
  }
};

}  // namespace cluster::shm
