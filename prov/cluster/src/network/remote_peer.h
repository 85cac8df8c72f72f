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

/// Sessions of one peer that are over. A late copy of their first frame must not open them again: what it
/// carries may have been delivered already.
class ClosedSessions {
 public:
  /// All earlier epochs are over with it.
  void add(const reliability::PeerSession& session) { until_ = std::max(until_, session.epoch); }
  /// The peer's present incarnation begins there: what an earlier one has opened is over.
  void add_before(std::uint64_t epoch) {
    if (epoch != 0) until_ = std::max(until_, epoch - 1);
  }
  bool contains(const wire::Opening& opening) const { return opening.epoch <= until_; }
  /// A new session needs a larger one.
  std::uint64_t epoch() const { return until_; }

 private:
  std::uint64_t until_ = 0;
};

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
    bool member = false;  ///< when the address vector had this generation:
    std::uint64_t generation = ~std::uint64_t{0};
    Time next_request{};
    Time
        awaited_since{};  ///< when the first frame of the session was dropped to wait for the answer; Time{}: none was
  } sibling;
  std::size_t held = 0;  ///< bytes held for it as an unknown source (unknown_budget.h)
  Time heard_at{};       ///< last frame of its session, or that asked for it
  Timer timer;           ///< of its flow
  ClosedSessions closed_sessions;
  bool tx_pending = false;  ///< in TxScheduler's list: its flow has something to do before this turn ends
  /// Its kernel has been asked whether its process exists, which costs a connection.
  enum class Probed : std::uint8_t { no, as_member, as_other } probed = Probed::no;

  const SocketAddress& name() const { return common.name(); }
  /// Its session was only named to the sender of a frame that asked for one; neither side has used it.
  bool half_open() const {
    return flow != nullptr && !flow->handshake().knows_peer() && flow->queue().drained();
  }
  /// Its session carries what is sent to it.
  bool carries() const { return flow != nullptr && channel.carrier == &flow->queue(); }
};

}  // namespace cluster::network
