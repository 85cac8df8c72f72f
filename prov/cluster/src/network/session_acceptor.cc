#include "network/session_acceptor.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "os/udp_link.h"
#include "reliability/handshake.h"

namespace cluster::network {

SessionAcceptor::SessionAcceptor(const NetworkParts& parts, PeerTable& peers,
                                 transport::AdmissionControl& admission, TxScheduler& tx,
                                 SessionTable& sessions, PeerReach& reach, AnswerLimiter& answers)
    : parts_(parts),
      peers_(peers),
      admission_(admission),
      tx_(tx),
      sessions_(sessions),
      reach_(reach),
      answers_(answers),
      siblings_(parts, peers, sessions, answers) {}

RemotePeer* SessionAcceptor::peer_for_frame(Time now, const wire::FrameView& view, const link::Path& from) {
  if (view.session == 0) {
    answer(now, view, from);
    return nullptr;
  }
  RemotePeer* const peer = sessions_.find(view.session);
  const bool pending = peer != nullptr && peer->pending.flow != nullptr &&
                       peer->pending.flow->handshake().session() == view.session;
  if (peer != nullptr && names_closed_session(*peer, view)) [[unlikely]] {
    ++parts_.environment.counters.refused_stale;
    return nullptr;
  }
  if (peer != nullptr && (!pending || begin_pending(*peer, view, from))) return peer;
  if (peer == nullptr && sessions_.secrets().named(now, view)) return accept_by_cookie(now, view, from);
  ++parts_.environment.counters.refused_stale;
  if (view.sequenced()) refuse_unknown_session(now, view, from);
  return nullptr;
}

/// Returns true if the peer answers our flow with a session that is over here. The peer learns that the
/// session is over when this side refuses the peer's own frames of that session.
bool SessionAcceptor::names_closed_session(const RemotePeer& peer, const wire::FrameView& view) {
  return view.has_opening && !peer.flow->handshake().knows_peer() &&
         peer.closed_session == reliability::PeerSession{view.opening.epoch, view.opening.session};
}

/// Answers a frame that asks for a session. The frame may be the peer's first frame, a copy of it, or a frame
/// of an earlier incarnation. Any host can send such a frame under any name. Therefore the answer goes to the
/// address of that name, and this side drops the data in the frame.
void SessionAcceptor::answer(Time now, const wire::FrameView& view, const link::Path& from) {
  Counters& counters = parts_.environment.counters;
  const bool valid =
      view.kind == wire::FrameKind::flow && view.has_opening && view.opening.name != parts_.name;
  if (!valid || !wire::lists(view.opening, view.rails, from.to)) {
    ++counters.refused_malformed;
    if (valid) refuse_source(now, view, from);
    return;
  }
  const SocketAddress name = name_of(view);
  if (!answers_.admits_call(now, name)) {
    ++counters.refused_stale;
    return;
  }
  const link::Path path = sessions_.reply_path(name, from);
  if (sessions_.crowded() && !peers_.known(name)) {
    const std::uint32_t session = sessions_.secrets().cookie_for(now, view.opening);
    const auto flow = sessions_.build_flow(session, name, parts_.epoch, path);
    return flow->answer_opening(view, path, *parts_.link);
  }
  if (!admission_.admits(now, name, tx_.flows().size())) {
    ++counters.refused_stale;
    return;
  }
  RemotePeer& peer = parts_.of(peers_.find_or_add(name));
  std::optional<reliability::PeerSession> known;
  if (peer.flow != nullptr && peer.flow->handshake().knows_peer()) known = peer.flow->handshake().peer();
  const reliability::OpeningClass contact = reliability::classify_opening(known, view.opening);
  if (contact == reliability::OpeningClass::same) return;  // a late copy: the peer already knows our session
  // The peer may have given up the session that it named earlier. The call needs no answer here, because the
  // peer refuses this side's next frame in that session.
  if (contact == reliability::OpeningClass::stale && !peer.flow->handshake().peer_has_opening()) return;
  // A session that is over never begins again.
  if (contact == reliability::OpeningClass::stale || peer.closed(view.opening))
    return refuse(now, peer, view, from);
  reliability::Flow& flow = contact == reliability::OpeningClass::newer
                                ? sessions_.pending(now, peer, path)
                                : sessions_.answering(now, peer, path);
  flow.answer_opening(view, path, *parts_.link);
}

/// Accepts a frame of a session that this side has named to the sender without storing the session.
RemotePeer* SessionAcceptor::accept_by_cookie(Time now, const wire::FrameView& view, const link::Path& from) {
  const SocketAddress name = name_of(view);
  const bool named = view.opening.echo == sessions_.secrets().token_of(view.session, view.opening.name) &&
                     wire::lists(view.opening, view.rails, from.to);
  const bool known = peers_.known(name);
  const bool welcome = named && !known && admission_.admits(now, name, tx_.flows().size());
  RemotePeer* const peer = welcome ? &parts_.of(peers_.find_or_add(name)) : nullptr;
  if (peer == nullptr || peer->flow != nullptr || peer->closed(view.opening)) {
    ++parts_.environment.counters.refused_stale;
    // If the sender is known now, the application has inserted it into the address vector since this side
    // answered. The reset makes the sender call again, and this side then answers it as a member.
    if (named && known)
      answers_.send_reset(now, view, from, wire::ResetReason::unknown_session, parts_.epoch);
    return nullptr;
  }
  sessions_.answering(now, *peer, sessions_.reply_path(name, from), view.session);
  return peer;
}

void SessionAcceptor::refuse(Time now, const RemotePeer& peer, const wire::FrameView& view,
                             const link::Path& from) {
  ++parts_.environment.counters.refused_stale;
  const std::uint64_t epoch = peer.flow != nullptr ? peer.flow->handshake().peer_epoch() : 0;
  answers_.send_reset(now, view, from, wire::ResetReason::stale_epoch, std::max(epoch, peer.closed_epoch));
}

/// Tells the sender that its session is not known here, and at which epoch the sessions of this incarnation
/// begin. If the frame echoes another token than ours, an earlier incarnation of this side has named the
/// session. In this case the reset names no epoch. This incarnation may begin at an older epoch than that
/// session, because the clock of this node may have been set back. From an epoch the sender might conclude
/// that nobody has used the session, and retransmit its frames.
void SessionAcceptor::refuse_unknown_session(Time now, const wire::FrameView& view, const link::Path& from) {
  const bool named_here =
      !view.has_opening || view.opening.echo == sessions_.secrets().token_of(view.session, name_of(view));
  answers_.send_reset(now, view, from, wire::ResetReason::unknown_session, named_here ? parts_.epoch : 0);
}

/// A challenge for an unknown session gets a reset. The asker's session may be with an earlier incarnation of
/// this side, and the challenge may be the only frame that still gets through.
void SessionAcceptor::on_path_challenge(Time now, const wire::FrameView& view, const link::Path& from) {
  if (sessions_.find(view.session) != nullptr) return sessions_.on_path_challenge(now, view, from);
  ++parts_.environment.counters.refused_stale;
  refuse_unknown_session(now, view, from);
}

/// Called when a frame names the pending session. If the frame repeats the token of that session, its sender
/// receives frames sent to the peer's address. Returns true if the function has closed the session in use and
/// replaced it by the pending session. A peer that has not used its session may give it up and call again in
/// the same incarnation. Then this side keeps the session in use. Once the peer has refused the frames of
/// that session, this side calls the peer again.
bool SessionAcceptor::begin_pending(RemotePeer& peer, const wire::FrameView& view, const link::Path& from) {
  const bool introduces =
      peer.pending.flow->handshake().echoed(view) && wire::lists(view.opening, view.rails, from.to);
  if (!introduces) return false;
  // By now, the session in use may be with a later incarnation than the pending session, or its flow may
  // already be calling the peer again.
  const reliability::Handshake& in_use = peer.flow->handshake();
  const bool next =
      in_use.knows_peer() && view.opening.epoch > in_use.peer_epoch() && !peer.closed(view.opening);
  if (!next || peer.flow->given_up_for(view.opening)) {
    sessions_.drop_pending(peer);
    return false;
  }
  reach_.close(peer.common, Status::reset);  // this also puts the pending session into use
  return true;
}

/// Refuses a frame of another incarnation. The peer may have answered this side's opening and then restarted,
/// perhaps with its clock set back. If a late copy of the opening arrives after the restart, the new
/// incarnation answers it. But this side's session is with the earlier incarnation. The reset makes the new
/// incarnation forget its answer.
void SessionAcceptor::refuse_other_incarnation(Time now, const RemotePeer& peer, const wire::FrameView& view,
                                               const link::Path& from) {
  using reliability::OpeningClass;
  if (view.session == 0 || !view.has_opening || !view.sequenced()) return;
  const reliability::PeerSession known = peer.flow->handshake().peer();
  const OpeningClass contact = reliability::classify_opening(known, view.opening);
  if (contact == OpeningClass::newer)
    answers_.send_reset(now, view, from, wire::ResetReason::unknown_session, parts_.epoch);
  if (contact == OpeningClass::stale)
    answers_.send_reset(now, view, from, wire::ResetReason::stale_epoch, known.epoch);
}

/// A reset counts only if it quotes a frame in flight, because only the endpoint that received the frame can
/// quote it.
void SessionAcceptor::on_reset(Time now, const wire::FrameView& view, const link::Path& from) {
  RemotePeer* const peer = parts_.find(peers_.find(from.to));
  if (peer == nullptr || peer->flow == nullptr || !peer->flow->validates_reset(view.reset, from.to)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  if (view.reset.reason == static_cast<std::uint8_t>(wire::ResetReason::unknown_session)) {
    peer->close_before(view.reset.epoch);  // the present incarnation begins at this epoch
    if (reopen(now, *peer, view.reset.epoch)) return;
  } else if (view.reset.reason == static_cast<std::uint8_t>(wire::ResetReason::foreign_source)) {
    if (peer->half_open()) return;  // any host may have caused the session
    peers_.serve(peer->common, [&] { peer->flow->on_foreign_source(now); });
    return tx_.mark(*peer);
  } else {
    sessions_.skip_epoch(view.reset.epoch);
  }
  peers_.mark_failed(peer->common, Status::reset);
}

/// Called when a reset says that the peer does not know the session that its opening named. Returns true if
/// the flow can continue with the peer's present incarnation, which begins at the epoch `peer_begins`. The
/// flow can continue if this incarnation has named the session and has given it up unused. Retransmission is
/// then safe, because the incarnation knows which frames it has accepted. If an earlier incarnation has named
/// the session, that incarnation may have accepted our frames. In this case the flow must not retransmit the
/// frames, and the function returns false.
bool SessionAcceptor::reopen(Time now, RemotePeer& peer, std::uint64_t peer_begins) {
  const reliability::PeerSession ended = peer.flow->handshake().peer();
  if (peer_begins == 0 || ended.epoch < peer_begins || !peer.flow->reopen(now)) return false;
  tx_.mark(peer);
  return true;
}

/// Called for an opening that does not list the address from which it came. If a router translates the
/// sender's address, the reset tells the sender why nothing answers. With a key this does not happen, because
/// the sealed link knows the sender (seal/translation.h). The reset is shorter than the opening,
/// and gives the sender nothing that would prove a name.
void SessionAcceptor::refuse_source(Time now, const wire::FrameView& view, const link::Path& from) {
  if (view.sequenced()) answers_.send_reset(now, view, from, wire::ResetReason::foreign_source, 0);
  warn_of_source(now, view.opening.name, from.to);
}

void SessionAcceptor::warn_of_source(Time now, const SocketAddress& name, const SocketAddress& source) {
  if (now < next_source_warning_) return;
  next_source_warning_ = now + kSourceWarningInterval;
  parts_.environment.log.warn(
      "peer %s is refused: its first frame came from %s, which is not an address of the peer (a router seems "
      "to translate addresses: set FI_CLUSTER_KEY_FILE on all nodes of the job, or connect the nodes by a "
      "route without translation, or by a tunnel)",
      name.text().c_str(), source.text().c_str());
}

/// Returns the address by which the application knows the sender: the sender's name, or another of its
/// addresses.
SocketAddress SessionAcceptor::name_of(const wire::FrameView& view) {
  const SocketAddress& name = view.opening.name;
  if (view.rails.empty() || peers_.known(name)) return name;
  for (const SocketAddress& other : wire::read_rails(view.rails)) {
    if (!sessions_.is_own(other) && peers_.known(other)) return other;
  }
  return name;
}

/// The nodes of one network usually have one MTU, so one log line is enough for all peers.
void SessionAcceptor::compare_mtu(const RemotePeer& peer, const wire::Opening& opening) {
  const std::size_t ours = std::min(parts_.link->frame_max(), wire::kFrameMax);
  if (logged_mtu_ || ours == opening.frame_max) return;
  logged_mtu_ = true;
  const SocketAddress::Family family = parts_.name.family();
  parts_.environment.log.warn(
      "path to %s: the peer's interface has MTU %zu and this node's interface has %zu; frames are "
      "short enough for both (\"ip link set IFACE mtu BYTES\" changes an MTU)",
      peer.name().text().c_str(), os::mtu_for(opening.frame_max, family), os::mtu_for(ours, family));
}

}  // namespace cluster::network
