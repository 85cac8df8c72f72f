// A peer as the network knows it: its session, and facts about earlier sessions. It is created with the first
// frame from or to the peer, and lives as long as the peer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/address.h"
#include "base/units.h"
#include "network/timer_heap.h"
#include "reliability/flow.h"
#include "reliability/handshake.h"
#include "transport/peer.h"

namespace cluster::network {

using transport::Peer;

struct RemotePeer final : transport::TransportPeer {
  explicit RemotePeer(Peer& peer) : common(peer), channel(peer.channel) { timer.owner = this; }

  Peer& common;  ///< what all transports share about the peer
  protocol::Channel& channel;
  std::unique_ptr<reliability::Flow> flow;
  /// A session for the peer's next incarnation while the present one may still be alive. It becomes `flow`
  /// once the peer has addressed it: that shows that the peer receives what is sent to its address.
  struct Pending {
    std::unique_ptr<reliability::Flow> flow;
    Time since{};
  } pending;
  /// Another endpoint of the peer's process, named in its opening (sibling_check.h). Valid while the session
  /// lasts.
  struct Sibling {
    SocketAddress name;         ///< empty: none
    std::uint32_t session = 0;  ///< the peer's session for which the claim counts
    enum class Claim : std::uint8_t { none, made, confirmed } claim = Claim::none;
    std::uint64_t challenge = 0;  ///< the answer about this claim must repeat it
    Time next_request{};
    Time awaited_since{};  ///< when a first frame was dropped to wait for the answer; Time{}: none was
  } sibling;
  std::size_t held = 0;  ///< bytes held for the peer as an unknown source (unknown_budget.h)
  Time heard_at{};       ///< the last frame of its session, or the last that asked for one
  Timer timer;           ///< of the peer's flow
  /// Sessions up to this epoch are over. A late copy of a first frame must not reopen one, since it may have
  /// been delivered already.
  std::uint64_t closed_epoch = 0;
  bool tx_pending = false;  ///< in the list of TxScheduler: the flow has work to do before this turn ends
  /// Whether this side has asked the peer's kernel about its process, which costs a connection.
  enum class Probed : std::uint8_t { no, as_member, as_other } probed = Probed::no;

  bool closed(const wire::Opening& opening) const { return opening.epoch <= closed_epoch; }
  void close_until(std::uint64_t epoch) { closed_epoch = std::max(closed_epoch, epoch); }
  const SocketAddress& name() const { return common.name(); }
  /// Returns true if this side has only named the session to a sender that asked for one, and neither side
  /// has used it.
  bool half_open() const {
    return flow != nullptr && !flow->handshake().knows_peer() && flow->queue().drained();
  }
  /// Returns true if the session carries what is sent to the peer.
  bool carries() const { return flow != nullptr && channel.carrier == &flow->queue(); }
};

}  // namespace cluster::network
