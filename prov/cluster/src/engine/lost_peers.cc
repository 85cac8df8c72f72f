#include "engine/lost_peers.h"

#include <utility>

namespace cluster::engine {

bool LostPeers::has_returned(Peer& peer) {
  if (carriers_.open_ring(peer)) {
    peer.absence.lost = Status::ok;
    return true;
  }
  if (parts_.link == nullptr || (peer.flow != nullptr && !peer.half_open())) return false;
  const Status lost = peer.absence.lost;
  carriers_.open_session(peer);
  messenger_.remind(peer.channel);
  peer.channel.carrier = nullptr;
  peer.absence.lost = lost;
  return false;
}

void LostPeers::contact_awaited(Time now) {
  if (parts_.type == EndpointType::dgram) return;
  messenger_.matcher().queues().each_directed([&](protocol::Channel& channel) {
    Peer& peer = *static_cast<Peer*>(channel.owner);
    const bool called = peer.flow != nullptr && !peer.half_open();
    if (channel.carrier != nullptr || called || peer.absence.departed) return;
    if (peer.absence.awaited_since == Time{}) {
      peer.absence.awaited_since = now;
    } else if (now - peer.absence.awaited_since >= kContactAfter) {
      peer.absence.awaited_since = Time{};
      awaited_.push_back(&peer);
    }
  });
  for (Peer* peer : std::exchange(awaited_, {})) {
    const Reach reached = reach(*peer);
    if (reached == Reach::reached && peer->flow != nullptr) messenger_.remind(peer->channel);
    if (reached == Reach::unreached && (peer->flow == nullptr || peer->half_open())) peers_.mark_failed(*peer, Status::unreachable);
  }
}

}  // namespace cluster::engine
