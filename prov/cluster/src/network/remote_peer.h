// The part of a peer that belongs to the network transport: the peer's session, and facts about earlier
// sessions. The first frame to or from the peer creates this part, and the part exists as long as the peer.
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
  /// A session for the peer's next incarnation while the present incarnation may still be alive. The session
  /// becomes `flow` once a frame from the peer names the session. Such a frame proves that the peer receives
  /// frames sent to its address.
  struct Pending {
    std::unique_ptr<reliability::Flow> flow;
    Time since{};
  } pending;
  /// Another endpoint of the peer's process, which the peer has named in its opening (sibling_check.h). Valid
  /// only during the session.
  struct Sibling {
    SocketAddress name;         ///< empty: none
    std::uint32_t session = 0;  ///< the peer's session that the claim belongs to
    enum class Claim : std::uint8_t { none, made, confirmed } claim = Claim::none;
    std::uint64_t challenge = 0;  ///< the answer about this claim must repeat this number
    Time next_request{};
    Time awaited_since{};  ///< when the first frame was dropped to wait for the answer, or Time{}
  } sibling;
  std::size_t held = 0;  ///< bytes held for the peer as an unknown source (unknown_budget.h)
  Time heard_at{};       ///< time of the last frame of the peer's session, or of the last call
  Timer timer;           ///< the timer of the peer's flow
  /// Sessions up to this epoch are over. A late copy of a first frame must not reopen such a session, because
  /// the frame may have been delivered already.
  std::uint64_t closed_epoch = 0;
  /// The last closed session in which something had arrived. The peer may still have this session, and may
  /// name it in its next answer. (An answer with another session is new, whatever its epoch.)
  reliability::PeerSession closed_session;
  bool tx_pending = false;  ///< listed in TxScheduler, because the flow has work to do in this turn
  /// Says whether this side is asking the peer's kernel about the peer's process. Each such question takes a
  /// connection, so the number of questions about unknown sources is limited.
  enum class Probed : std::uint8_t { no, as_member, as_other } probed = Probed::no;

  bool closed(const wire::Opening& opening) const { return opening.epoch <= closed_epoch; }
  void close_until(std::uint64_t epoch) { closed_epoch = std::max(closed_epoch, epoch); }
  /// Records that the sessions before the one with this epoch are over.
  void close_before(std::uint64_t epoch) {
    if (epoch != 0) close_until(epoch - 1);
  }
  void close_session(const reliability::PeerSession& session) {
    closed_session = session;
    close_until(session.epoch);
  }
  const SocketAddress& name() const { return common.name(); }
  /// Returns true if this side has only named the session to a caller, and neither side has used the session
  /// yet.
  bool half_open() const {
    return flow != nullptr && !flow->handshake().knows_peer() && flow->queue().drained();
  }
  /// Returns true if the session is the peer's carrier.
  bool carries() const { return flow != nullptr && channel.carrier == &flow->queue(); }
};

}  // namespace cluster::network
