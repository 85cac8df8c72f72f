#include "engine/session_acceptor.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "os/udp_link.h"
#include "reliability/handshake.h"

namespace cluster::engine {

SessionAcceptor::SessionAcceptor(const EngineParts& parts, PeerTable& peers, AdmissionControl& admission,
                                 TxScheduler& tx, SessionTable& sessions, PeerCloser& closer)
    : parts_(parts),
      peers_(peers),
      admission_(admission),
      tx_(tx),
      sessions_(sessions),
      closer_(closer),
      resets_(parts.link.get()) {}

Peer* SessionAcceptor::peer_for_frame(Time now, const wire::FrameView& view, const link::Path& from) {
  if (view.session == 0) return open(now, view, from);
  Peer* peer = sessions_.find(view.session);
  const bool pending = peer != nullptr && peer->pending.flow != nullptr &&
                       peer->pending.flow->handshake().session() == view.session;
  // The session in use may have proved to be with a later incarnation than the pending one.
  if (pending && peer->flow->handshake().address_validated() &&
      peer->pending.flow->handshake().peer_epoch() <= peer->flow->handshake().peer_epoch()) {
    sessions_.drop_pending(*peer);
    peer = nullptr;
  } else if (pending) {
    closer_.close(*peer, Status::reset);  // and the pending session takes the place of the other
  }
  if (peer != nullptr) return peer;
  ++parts_.environment.counters.refused_stale;
  if (view.sequenced()) resets_.send(now, view, from, wire::ResetReason::unknown_session, parts_.epoch);
  return nullptr;
}

/// A frame that opens a session: the first of the peer, a repeated one, or one of an earlier incarnation.
Peer* SessionAcceptor::open(Time now, const wire::FrameView& view, const link::Path& from) {
  Counters& counters = parts_.environment.counters;
  const bool valid = view.has_opening && view.opening.name != parts_.name;
  if (!valid || !sent_from_own_address(view, from)) {
    ++counters.refused_malformed;
    if (valid) warn_of_source(now, view.opening.name, from.to);
    return nullptr;
  }
  const SocketAddress name = name_of(view);
  if (!admission_.admits(now, name, tx_.flows().size())) {
    ++counters.refused_stale;
    return nullptr;
  }
  Peer& peer = peers_.find_or_add(name);
  std::optional<reliability::PeerSession> known;
  if (peer.flow != nullptr && peer.flow->handshake().knows_peer()) known = peer.flow->handshake().peer();
  const reliability::OpeningClass contact = reliability::classify_opening(known, view.opening);
  if (contact == reliability::OpeningClass::same) return &peer;
  // A session that is over does not begin again, whatever is in use now.
  if (peer.closed_sessions.contains(view.opening)) return refuse(now, peer, view, from);
  // A session that is not validated has no claim to the name: a stale one may take its place.
  const bool claimed = known && peer.flow->handshake().address_validated();
  if (contact == reliability::OpeningClass::stale && claimed) return refuse(now, peer, view, from);
  return accept(now, peer, view, from);
}

Peer* SessionAcceptor::refuse(Time now, const Peer& peer, const wire::FrameView& view,
                              const link::Path& from) {
  ++parts_.environment.counters.refused_stale;
  const std::uint64_t epoch = peer.flow != nullptr ? peer.flow->handshake().peer_epoch() : 0;
  resets_.send(now, view, from, wire::ResetReason::stale_epoch,
               std::max(epoch, peer.closed_sessions.epoch()));
  return nullptr;
}

/// A frame may open the session: at once if the peer has none, else after an exchange that shows where it
/// comes from.
Peer* SessionAcceptor::accept(Time now, Peer& peer, const wire::FrameView& view, const link::Path& from) {
  if (peer.flow == nullptr) {
    sessions_.accept(now, peer, sessions_.reply_path(peer, from));
    peer.carrier_reason = "the peer opened the session";
    parts_.environment.log.info("peer %s is reached by the %s link: %s", peer.name().text().c_str(),
                                parts_.link->name(), peer.carrier_reason.c_str());
    return &peer;
  }
  if (peer.flow->handshake().knows_peer()) {
    challenge(now, peer, view, from);
  } else if (view.kind == wire::FrameKind::flow) {
    peer.flow->answer_opening(view, sessions_.reply_path(peer, from),
                              *parts_.link);  // both sides open at once
  }
  return nullptr;
}

/// A frame claims to come from the peer's next incarnation. The session in use is not given up for that: the
/// claimant gets the id of a session made for it, and is genuine if it addresses that one.
void SessionAcceptor::challenge(Time now, Peer& peer, const wire::FrameView& view, const link::Path& from) {
  if (peer.pending.flow != nullptr) {
    const reliability::PeerSession known = peer.pending.flow->handshake().peer();
    const bool another =
        reliability::classify_opening(known, view.opening) != reliability::OpeningClass::same;
    if (another && now < peer.pending.since + kChallengeTimeout) {
      ++parts_.environment.counters.refused_stale;
      return;
    }
    if (another) sessions_.drop_pending(peer);
  }
  if (peer.pending.flow == nullptr) sessions_.add_pending(now, peer, sessions_.reply_path(peer, from));
  peer.pending.flow->accept_opening(view, *parts_.link);
}

/// The peer may have answered this side's opening, begun anew (perhaps with its clock set back), and now
/// answer a late copy of the opening. The session is not for that incarnation: the reset makes the peer
/// forget its answer.
void SessionAcceptor::refuse_other_incarnation(Time now, const Peer& peer, const wire::FrameView& view,
                                               const link::Path& from) {
  using reliability::OpeningClass;
  if (view.session == 0 || !view.has_opening || !view.sequenced()) return;
  const reliability::PeerSession known = peer.flow->handshake().peer();
  const OpeningClass contact = reliability::classify_opening(known, view.opening);
  if (contact == OpeningClass::newer)
    resets_.send(now, view, from, wire::ResetReason::unknown_session, parts_.epoch);
  if (contact == OpeningClass::stale)
    resets_.send(now, view, from, wire::ResetReason::stale_epoch, known.epoch);
}

/// Only the endpoint that a frame was sent to can refuse it, and only by quoting it.
void SessionAcceptor::on_reset(Time now, const wire::FrameView& view, const link::Path& from) {
  Peer* peer = peers_.find(from.to);
  if (peer == nullptr || peer->flow == nullptr || !peer->flow->validates_reset(view.reset)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  if (view.reset.reason == static_cast<std::uint8_t>(wire::ResetReason::unknown_session)) {
    if (reopen(now, *peer, view.reset.epoch)) return;
  } else {
    sessions_.skip_epoch(view.reset.epoch);
  }
  peers_.mark_failed(*peer, Status::reset);
}

/// The session that the peer named in its opening has ended before it was used: the peer gave it up because it
/// belonged to an earlier incarnation of this side. An incarnation of the peer that has ended may have taken
/// what we sent, which then must not be sent again; the present one knows what it has taken.
bool SessionAcceptor::reopen(Time now, Peer& peer, std::uint64_t peer_begins) {
  const reliability::PeerSession ended = peer.flow->handshake().peer();
  const bool validated = peer.flow->handshake().address_validated();
  if (peer_begins == 0 || ended.epoch < peer_begins || !peer.flow->reopen(now)) return false;
  peer.closed_sessions.add(ended, validated);
  tx_.mark(peer);
  return true;
}

/// An endpoint with several addresses may send from any of them.
bool SessionAcceptor::sent_from_own_address(const wire::FrameView& view, const link::Path& from) {
  return wire::lists(view.opening, view.rails, from.to);
}

void SessionAcceptor::warn_of_source(Time now, const SocketAddress& name, const SocketAddress& source) {
  if (now < next_source_warning_) return;
  next_source_warning_ = now + kSourceWarningInterval;
  parts_.environment.log.warn(
      "peer %s is refused: its opening came from %s, which is none of its addresses (is there address "
      "translation on the way?)",
      name.text().c_str(), source.text().c_str());
}

/// The name under which the application knows the sender: its own, or another address of it.
SocketAddress SessionAcceptor::name_of(const wire::FrameView& view) {
  const SocketAddress& name = view.opening.name;
  if (view.rails.empty() || peers_.known(name)) return name;
  for (const SocketAddress& other : wire::read_rails(view.rails)) {
    if (!sessions_.is_own(other) && peers_.known(other)) return other;
  }
  return name;
}

/// The nodes of one network usually have one MTU, so one line tells of all peers.
void SessionAcceptor::compare_mtu(const Peer& peer, const wire::Opening& opening) {
  const std::size_t ours = std::min(parts_.link->frame_max(), wire::kFrameMax);
  if (logged_mtu_ || ours == opening.frame_max) return;
  logged_mtu_ = true;
  const SocketAddress::Family family = parts_.name.family();
  parts_.environment.log.warn(
      "path to %s: its interface has MTU %zu, this node's has %zu; the smaller is used (ip link set mtu)",
      peer.name().text().c_str(), os::mtu_for(opening.frame_max, family), os::mtu_for(ours, family));
}

}  // namespace cluster::engine
