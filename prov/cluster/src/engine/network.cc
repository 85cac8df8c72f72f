// Frames: through the gate, to the flow whose session they name, and what the flow hands on to the
// messenger. Also what belongs to no flow: strangers' openings, resets, probes; and the timers.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/core.h"
#include "reliability/handshake.h"
#include "wire/control.h"
#include "wire/opening.h"

namespace cluster::engine {
namespace {

/// Resets answer strangers: not more often than this, or they would amplify a flood.
constexpr Duration kResetGap = 100us;
/// Reading the socket's path_errors is a system call.
constexpr Duration kComplaintGap = 5ms;
/// How long a peer may say nothing while an operation waits for it, and how often that is looked at.
constexpr Duration kSilence = 1s;
constexpr Duration kAskEvery = 500ms;
/// Bursts taken from the link in one turn.
constexpr std::size_t kBurstsPerTurn = 4;

}  // namespace

/// How many frames the link had. `now` is read behind each look: what was found had come by then.
std::size_t Core::receive_network(Time& now) {
  std::size_t arrivals = 0;
  for (std::size_t burst = 0; burst < kBurstsPerTurn; ++burst) {
    const std::size_t count = parts_.link->receive_burst(frames_);
    now = parts_.environment.clock.now();
    silent_looks_ = count > 0 ? 0 : silent_looks_ + 1;
    for (std::size_t i = 0; i < count; ++i) {
      ConstBytes bytes = frames_[i].bytes;
      while (!bytes.empty()) {
        ++arrivals;
        wire::FrameView view;
        const wire::Refusal refusal = wire::admit(bytes, view);
        if (refusal != wire::Refusal::none) {
          Counters& counters = parts_.environment.counters;
          ++(refusal == wire::Refusal::checksum ? counters.refused_checksum : counters.refused_malformed);
          break;
        }
        ++parts_.environment.counters.frames_received;
        dispatch(now, view, frames_[i]);
        bytes = bytes.subspan(view.length);
      }
    }
    if (count < frames_.size()) break;
  }
  return arrivals;
}

void Core::dispatch(Time now, const wire::FrameView& view, const link::InFrame& frame) {
  using wire::FrameKind;
  const link::Path& from = frame.from;
  // The administrator's filters for IP do not see the shortcut: it is for those whom they have let in.
  if (from.ethertype && view.session == 0) {
    ++parts_.environment.counters.refused_malformed;
    return;
  }
  if (view.kind == FrameKind::probe) return;  // the probe responder answers
  if (view.kind == FrameKind::reset) return on_reset(view, from);
  if (view.kind == FrameKind::alive) return on_alive(now, view, from);
  if (view.kind == FrameKind::trial) return on_trial(view, from);
  if (view.kind == FrameKind::datagram || parts_.service == EndpointType::dgram) {
    return dispatch_datagram(now, view, from);
  }
  Peer* peer = addressee(now, view, from);
  if (peer == nullptr) return;
  const reliability::ReceiveResult verdict = peer->flow->receive(now, view, from, frame.arrived);
  if (verdict == reliability::ReceiveResult::refused) return refuse_other_life(now, *peer, view, from);
  // Whoever only repeats its call is called back as if it were silent.
  if (view.session != 0 || verdict == reliability::ReceiveResult::accepted) peer->heard_at = now;
  if (view.has_opening) compare_mtu(*peer, view.opening);
  if (view.kind == FrameKind::fin) peer->channel.farewell = true;
  if (verdict == reliability::ReceiveResult::accepted) {
    hand_up(*peer, {now, host_delay(now, view, frame)});
  }
  touch(*peer);
}

/// How long the newest of our frames lay with the peer when it sealed this one, and this one with us; nothing
/// if nobody knows.
std::optional<Duration> Core::host_delay(Time now, const wire::FrameView& view, const link::InFrame& frame) {
  if (!view.knows_ack_delay()) return std::nullopt;
  return Duration(view.ack_delay_ns) + (now - std::min(frame.arrived, now));
}

/// Whose flow a frame belongs to; null if nobody's (then it has been answered and counted).
Peer* Core::addressee(Time now, const wire::FrameView& view, const link::Path& from) {
  if (view.session == 0) return greet(now, view, from);
  Peer* peer = peers_.by_session(view.session);
  const bool courted =
      peer != nullptr && peer->suitor != nullptr && peer->suitor->handshake().session() == view.session;
  if (courted && outdone(*peer)) {
    drop_suitor(*peer);
    peer = nullptr;
  } else if (courted) {
    lose(*peer, Status::reset);
  }
  if (peer != nullptr) return peer;
  ++parts_.environment.counters.refused_stale;
  if (view.sequenced()) refuse_frame(now, view, from, wire::ResetReason::unknown_session, 0);
  return nullptr;
}

/// The peer may have answered our call, begun anew (perhaps with its clock set back), and now answer a copy
/// of the call that came late. The session is not for that life: told so, it forgets the answer.
void Core::refuse_other_life(Time now, const Peer& peer, const wire::FrameView& view,
                             const link::Path& from) {
  using reliability::OpeningClass;
  if (view.session == 0 || !view.has_opening || !view.sequenced()) return;
  const reliability::PeerSession known{peer.flow->handshake().peer_epoch(),
                                       peer.flow->handshake().peer_session()};
  const OpeningClass contact = reliability::classify_opening(known, view.opening);
  if (contact == OpeningClass::newer) refuse_frame(now, view, from, wire::ResetReason::unknown_session, 0);
  if (contact == OpeningClass::stale)
    refuse_frame(now, view, from, wire::ResetReason::stale_epoch, known.epoch);
}

/// Who has several addresses may call from any of them.
bool Core::comes_from_its_name(const wire::FrameView& view, const link::Path& from) {
  if (view.opening.name == from.to) return true;
  if (view.rails.empty()) return false;
  const std::vector<SocketAddress> further = wire::read_rails(view.rails);
  return std::find(further.begin(), further.end(), from.to) != further.end();
}

/// The name under which the application knows the caller: its own, or another address of it.
SocketAddress Core::known_as(const wire::FrameView& view) {
  const SocketAddress& name = view.opening.name;
  if (view.rails.empty() || peers_.expected(name)) return name;
  for (const SocketAddress& other : wire::read_rails(view.rails)) {
    if (!is_own(other) && peers_.expected(other)) return other;
  }
  return name;
}

/// The answer echoes what only we and those whom we have asked know: our session. Where the peer itself gives
/// it, it is found from now on: that it says so is not enough, or it could claim the address of another.
void Core::on_alive(Time now, const wire::FrameView& view, const link::Path& from) {
  Peer* peer = peers_.by_session(view.sequence.value);
  if (peer == nullptr || peer->flow == nullptr || peer->flow->handshake().session() != view.sequence.value)
    return;
  peer->flow->on_alive(now, from, view.session == view.sequence.value);
  for (const SocketAddress& address : peer->flow->paths().validated_addresses()) {
    if (is_own(address)) continue;
    peer->aliased = true;
    peers_.alias(*peer, address);
  }
}

/// Whoever knows both names of a session is its peer, by whatever way it asks.
void Core::on_trial(const wire::FrameView& view, const link::Path& from) {
  Peer* peer = peers_.by_session(view.session);
  const std::uint32_t asker = view.sequence.value;
  const bool ours = peer != nullptr && peer->flow != nullptr &&
                    peer->flow->handshake().session() == view.session &&
                    peer->flow->handshake().peer_session() == asker && asker != 0;
  if (!ours) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  send_control(wire::ControlFrame::alive(asker, asker).bytes(), from);
}

/// Answers go to the name by which the application knows the peer: who is not there does not hear them.
link::Path Core::way_back(const Peer& peer, const link::Path& from) const {
  if (peer.name() == from.to || peers_.is_alias(from.to, peer)) return without_mac(from);
  return {peer.name(), {}, false, multipath::rail_towards(parts_.rails, peer.name())};
}

/// A frame that opens a session: the peer's first, a repeated one, or one of an earlier life.
Peer* Core::greet(Time now, const wire::FrameView& view, const link::Path& from) {
  if (!view.has_opening || view.opening.name == parts_.name || !comes_from_its_name(view, from)) {
    ++parts_.environment.counters.refused_malformed;
    return nullptr;
  }
  const SocketAddress name = known_as(view);
  if (!room_for(now, name, remotes_.size())) {
    ++parts_.environment.counters.refused_stale;
    return nullptr;
  }
  Peer& peer = peers_.named(name);
  std::optional<reliability::PeerSession> known;
  if (peer.flow != nullptr && peer.flow->handshake().peer_session() != 0) {
    known =
        reliability::PeerSession{peer.flow->handshake().peer_epoch(), peer.flow->handshake().peer_session()};
  }
  reliability::OpeningClass contact = reliability::classify_opening(known, view.opening);
  // A session that is over does not begin again, whoever calls now: what it brought may have been handed on.
  const bool over = contact != reliability::OpeningClass::same && peer.past.covers(view.opening);
  if (over) contact = reliability::OpeningClass::stale;
  switch (contact) {
    case reliability::OpeningClass::same: return &peer;
    case reliability::OpeningClass::stale:
      // Who has not shown yet that it hears us has no claim to the name: another may, if it was not over
      // before.
      if (known && !peer.flow->handshake().address_validated() && !over) break;
      ++parts_.environment.counters.refused_stale;
      refuse_frame(now, view, from, wire::ResetReason::stale_epoch,
                   std::max(known ? known->epoch : 0, peer.past.epoch()));
      return nullptr;
    case reliability::OpeningClass::newer: break;
    case reliability::OpeningClass::fresh: break;
  }
  if (known) {
    court(now, peer, view, from);
    return nullptr;
  }
  if (peer.flow != nullptr) {
    if (view.kind == wire::FrameKind::flow)
      peer.flow->answer_opening(view, way_back(peer, from), *parts_.link);
    return nullptr;
  }
  use_flow(peer, make_flow(peer, way_back(peer, from)));
  half_open_ = true;
  peer.heard_at = now;
  peer.why = "it called first";
  parts_.environment.log.info("path to %s: %s link (%s)", peer.name().text().c_str(), parts_.link->name(),
                              peer.why.c_str());
  return &peer;
}

void Core::hand_up(Peer& peer, const protocol::ArrivalInfo& info) {
  ConstBytes segments;
  while (peer.flow->receiver().next(segments)) {
    while (!segments.empty()) {
      wire::Segment segment;
      const std::size_t header = wire::decode(segments, segment);
      if (header == 0 || segment.length > segments.size() - header) {
        ++parts_.environment.counters.refused_segment;
        break;
      }
      segment.address = 0;  // memory is named between processes of one node, and by rings only
      const bool may = may_act(peer, segment);
      if (!may || !messenger_.ready(peer.channel, segment)) [[unlikely]] {
        if (!peer.flow->receiver().may_hold()) {  // what has an order came in a frame that has none
          ++parts_.environment.counters.refused_segment;
          break;
        }
        peer.flow->receiver().hold(segments);
        flows_held_ = true;
        if (may) count_held();
        return;
      }
      messenger_.arrive(peer.channel, segment, segments.subspan(header, segment.length), info);
      segments = segments.subspan(header + segment.length);
    }
  }
}

/// Anybody can call under a name that is not its own, and what it says may as well be a message: but memory
/// is touched for nobody who has not shown that it hears what is sent to that name.
bool Core::may_act(const Peer& peer, const wire::Segment& segment) {
  using wire::SegmentKind;
  const bool remote = segment.kind == SegmentKind::put || segment.kind == SegmentKind::put_announce ||
                      segment.kind == SegmentKind::get || segment.kind == SegmentKind::atomic;
  return !remote || peer.flow->handshake().address_validated();
}

/// What has come does not fit into the store: it waits where it is, and its sender with it.
void Core::count_held() {
  ++parts_.environment.counters.unexpected_full;
  if (std::exchange(said_store_full_, true)) return;
  parts_.environment.log.warn(
      "senders are made to wait: no more messages can be stored until receives take some; from now on "
      "counted");
}

/// Flows go on whose messages found no room and find it now.
void Core::resume_held(Time now) {
  flows_held_ = false;
  for (Peer* peer : remotes_) {
    if (!peer->flow->receiver().holding()) continue;
    wire::Segment segment;
    wire::decode(peer->flow->receiver().held(), segment);
    if (!may_act(*peer, segment) || !messenger_.ready(peer->channel, segment)) {
      flows_held_ = true;
      continue;
    }
    peer->flow->receiver().resume(now);
    hand_up(*peer, {now, std::nullopt});
    touch(*peer);
  }
}

/// Only whom a frame was sent to can refuse it, and only by quoting it.
void Core::on_reset(const wire::FrameView& view, const link::Path& from) {
  Peer* peer = peers_.find(from.to);
  if (peer == nullptr || peer->flow == nullptr || !peer->flow->validates_reset(view.reset)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  // An epoch that leaves no room above it would be our last.
  if (view.reset.epoch < wire::kEpochEnd - wire::kEpochEnd / 8)
    last_epoch_ = std::max<std::uint64_t>(last_epoch_, view.reset.epoch);
  doom(*peer, Status::reset);
}

void Core::refuse_frame(Time now, const wire::FrameView& view, const link::Path& to, wire::ResetReason reason,
                        std::uint64_t epoch) {
  if (now < next_reset_) return;
  next_reset_ = now + kResetGap;
  send_control(wire::ControlFrame::reset(view, reason, epoch).bytes(), link::ip_path(to));
}

void Core::send_control(ConstBytes frame, const link::Path& to) {
  link::OutFrame out;
  out.path = &to;
  out.add(frame);
  parts_.link->send_burst({&out, 1});
}

void Core::touch(Peer& peer) {
  if (peer.touched) return;
  peer.touched = true;
  touched_.push_back(&peer);
}

void Core::run_timers(Time now) {
  bool worried = false;
  while (const Timer* timer = timers_.due(now)) {
    Peer& peer = *static_cast<Peer*>(timer->owner);
    reliability::Flow& flow = *peer.flow;
    if (flow.deadline() > now) {
      timers_.plan(peer.timer, flow.deadline());
      continue;
    }
    flow.on_timer(now);
    worried = true;
    touch(peer);
    if (flow.wants_probe(now)) {
      const std::uint32_t nonce = flow.handshake().session();
      send_control(wire::ControlFrame::probe(nonce).bytes(), flow.paths().next_validated());
    }
  }
  if (worried && now >= next_complaints_) hear_complaints(now);
}

/// A peer may owe us an answer that no frame is waiting for: a `done`, bulk, a message. If it has been
/// silent for a while it is told something, which it either acknowledges or, in a new life, refuses.
void Core::ask_the_silent(Time now) {
  next_ask_ = now + kAskEvery;
  const auto ask = [&](Peer& peer) {
    const bool by_flow = peer.flow != nullptr && peer.channel.carrier == &peer.flow->queue();
    if (by_flow && peer.flow->queue().drained() && now - peer.heard_at >= kSilence) {
      messenger_.remind(peer.channel);
    }
  };
  bool half_open = false;
  for (Peer* peer : remotes_) {
    half_open = call_back(now, *peer) || half_open;
    if (peer->channel.waits() || !peer->flow->handshake().address_validated()) ask(*peer);
  }
  half_open_ = half_open;
  messenger_.each_directed([&](protocol::Channel& channel) { ask(*static_cast<Peer*>(channel.owner)); });
}

/// Anybody can call under a name that is not its own. Who does not turn to the session it was told is
/// called back (by ask(), which waits for an answer as long as for any peer's) and forgotten if nobody is
/// there. True if that is not quiescent yet.
bool Core::call_back(Time now, Peer& peer) {
  if (peer.suitor != nullptr && now >= peer.suitor_since + parts_.settings.peer_timeout) drop_suitor(peer);
  return peer.suitor != nullptr ||
         (!peer.flow->handshake().address_validated() && peer.channel.carrier == &peer.flow->queue());
}

void Core::hear_complaints(Time now) {
  next_complaints_ = now + kComplaintGap;
  std::array<link::PathError, 16> path_errors;
  const std::size_t count = parts_.link->read_path_errors(path_errors);
  for (std::size_t i = 0; i < count; ++i) {
    Peer* peer = peers_.find(path_errors[i].peer);
    if (peer == nullptr || peer->flow == nullptr) continue;
    peer->flow->on_path_error(now, path_errors[i]);
    touch(*peer);
  }
}

}  // namespace cluster::engine
