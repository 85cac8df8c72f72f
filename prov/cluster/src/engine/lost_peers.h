// Peers that are out of reach: those that were lost, and those of which this side waits for a message though
// neither has called the other.
//
// A lost peer may come back: a new process on its address, a node that was mended. Until it does, operations with it fail
// at once, with the cause of the loss. Each of them, and each receive that waits for it alone, sees to it that the
// peer is called: by a ring, which is there at once or not at all; over the network by a session without a
// carrier, which carries only this side's opening. The peer has come back when it answers that, or calls
// itself (SessionTable::on_answer); if it does not, that session ends like any other, which ends the receives.
//
// A peer that was never met is called when a receive has waited for it alone for kContactAfter: a peer that is
// dead would otherwise never be missed. One that has closed in an orderly way is not: receives wait for its next
// incarnation.
#pragma once

#include <vector>

#include "engine/carrier_selector.h"
#include "engine/engine_parts.h"
#include "engine/peer_closer.h"
#include "engine/peer_table.h"
#include "engine/session_table.h"
#include "protocol/messenger.h"

namespace cluster::engine {

class LostPeers {
 public:
  LostPeers(const EngineParts& parts, PeerTable& peers, protocol::Messenger& messenger,
            AdmissionControl& admission, LocalPeers& local, SessionTable& sessions)
      : parts_(parts),
        peers_(peers),
        messenger_(messenger),
        closer_(parts, peers, messenger, local, sessions),
        carriers_(parts, peers, admission, local, sessions, closer_) {}

  /// How a peer becomes one of them.
  PeerCloser& closer() { return closer_; }
  /// For peers that are within reach.
  CarrierSelector& carriers() { return carriers_; }
  /// The peer has no carrier. `unreached`: no carrier leads there, or it is still lost.
  Reach reach(Peer& peer) {
    if (peer.absence.lost == Status::ok) return carriers_.open(peer);
    return has_returned(peer) ? Reach::reached : Reach::unreached;
  }
  /// An operation with a lost peer: it is taken, and ends at once.
  template <typename Act>
  Status fail_at_once(Peer& peer, Act&& act) {
    peer.channel.carrier = &nowhere_;
    const Status status = act(peer.channel);
    messenger_.fail(peer.channel, peer.absence.lost, false);
    return status;
  }
  /// Calls peers that are waited for.
  void contact_awaited(Time now);

 private:
  static constexpr Duration kContactAfter = 1s;

  /// Takes nothing.
  class Nowhere final : public carrier::Carrier {
   public:
    std::size_t payload_max(const wire::Segment&) const override { return 0; }
    bool post(const wire::Segment&, const Gather&, carrier::PayloadMode, carrier::Token) override {
      return false;
    }
    bool acked_on_post() const override { return false; }
  };

  bool has_returned(Peer& peer);

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  PeerCloser closer_;
  CarrierSelector carriers_;
  Nowhere nowhere_;
  std::vector<Peer*> awaited_;  ///< scratch of contact_awaited()
};

}  // namespace cluster::engine
