// What the shared-memory transport keeps about a peer: a ring in each direction, and the state of the
// attempts to open them. The first attempt to open a ring, or the adoption of the peer's ring, creates the
// object. If that first attempt fails, the object is deleted, unless further attempts follow because the
// peer's queue of connections is full. Otherwise the object lives as long as the Peer.
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

/// Receives the events of peers' descriptors.
class PeerEvents {
 public:
  /// Called when a descriptor of the peer is ready. The reason may be that the peer's connection or process
  /// has ended.
  virtual void peer_ready(LocalPeer& peer) = 0;

 protected:
  ~PeerEvents() = default;
};

struct LocalPeer final : transport::TransportPeer, transport::WakeSource {
  LocalPeer(Peer& peer, PeerEvents& listener) : common(peer), channel(peer.channel), events(listener) {}

  Peer& common;  ///< what all transports share about the peer
  protocol::Channel& channel;
  PeerEvents& events;
  std::unique_ptr<Outbox> outbox;  ///< ring to the peer
  std::unique_ptr<Inbox> inbox;    ///< ring from the peer
  RingInbox* ring = nullptr;       ///< the inbox if it is a RingInbox, else null
  bool active = false;             ///< true if a segment has arrived since the last LocalPeers::review()
  bool held = false;               ///< true if the next segment waits for space in the unexpected store
  /// How many more times the fast lane may leave in the ring a message that no receive matches.
  std::uint8_t patience = 0;
  Time ended_at = kNever;  ///< when LocalDeaths noticed that the process had ended without closing
  bool suspect = false;    ///< true if a descriptor says that the peer may be dead; set only without an inbox
  // The next two members are used while the peer's queue of connections is full.
  Time connecting_since{};
  Time next_connection{};  ///< when to try the next connection

  const SocketAddress& name() const { return common.name(); }
  void on_ready(bool) override { events.peer_ready(*this); }
};

/// The objects of the transport share these members.
struct ShmParts {
  const transport::TransportContext& context;
  LocalListener& listener;
  transport::Transport& transport;
  PeerEvents& events;

  /// Returns the LocalPeer of the peer. Returns null if there is none, or if `peer` is null.
  LocalPeer* find(const Peer* peer) const {
    return peer != nullptr ? static_cast<LocalPeer*>(peer->parts[transport.slot()].get()) : nullptr;
  }
  /// Like find(), but creates the LocalPeer if the peer has none.
  LocalPeer& of(Peer& peer) const {
    std::unique_ptr<transport::TransportPeer>& part = peer.parts[transport.slot()];
    if (part == nullptr) part = std::make_unique<LocalPeer>(peer, events);
    return static_cast<LocalPeer&>(*part);
  }
  /// Undoes of() for a peer that no ring reaches.
  void drop(Peer& peer) const { peer.parts[transport.slot()].reset(); }
};

}  // namespace cluster::shm
