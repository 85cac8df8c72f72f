// A peer as the network knows it: its session, and what is known of earlier ones.
// It is made with the first frame from or to the peer, and kept as long as the peer is.
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

  Peer& common;  ///< what all transports share about it
  protocol::Channel& channel;
  std::unique_ptr<reliability::Flow> flow;
  /// A session for the peer's next incarnation while the present one may still be alive. It becomes `flow` once
  /// the peer has addressed it, which shows that it receives what is sent to its address.
  struct Pending {
    std::unique_ptr<reliability::Flow> flow;
    Time since{};
  } pending;
  /// The endpoint of its process that its opening names (sibling_check.h), while its session lasts.
  struct Sibling {
    SocketAddress name;         ///< empty: none
    std::uint32_t session = 0;  ///< of the peer, for which the claim counts
    enum class Claim : std::uint8_t { none, made, confirmed } claim = Claim::none;
    std::uint64_t challenge = 0;  ///< what the answer about this claim has to repeat
    Time next_request{};
    Time
        awaited_since{};  ///< when the first frame of the session was dropped to wait for the answer; Time{}: none was
  } sibling;
  std::size_t held = 0;  ///< bytes held for it as an unknown source (unknown_budget.h)
  Time heard_at{};       ///< last frame of its session, or that asked for it
  Timer timer;           ///< of its flow
  /// Sessions up to this epoch are over: a late copy of a first frame must not open one again, since it may have been delivered.
  std::uint64_t closed_epoch = 0;
  bool tx_pending = false;  ///< in TxScheduler's list: its flow has something to do before this turn ends
  /// Its kernel has been asked whether its process exists, which costs a connection.
  enum class Probed : std::uint8_t { no, as_member, as_other } probed = Probed::no;

  bool closed(const wire::Opening& opening) const { return opening.epoch <= closed_epoch; }
  void close_until(std::uint64_t epoch) { closed_epoch = std::max(closed_epoch, epoch); }
  const SocketAddress& name() const { return common.name(); }
  /// Its session was only named to the sender of a frame that asked for one; neither side has used it.
  bool half_open() const {
    return flow != nullptr && !flow->handshake().knows_peer() && flow->queue().drained();
  }
  /// Its session carries what is sent to it.
  bool carries() const { return flow != nullptr && channel.carrier == &flow->queue(); }
};

}  // namespace cluster::network
