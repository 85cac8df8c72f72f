#include "sim/incarnations.h"

#include <algorithm>

namespace cluster::sim {

void Incarnations::begins(HostNumber host, Time now, bool clock_went_back) {
  Host& state = hosts_[host];
  ++state.incarnation;
  state.alive = true;
  state.hidden = false;
  state.hidden_from.clear();
  state.began = now;
  state.began_at = ++moment_;
  state.clock_went_back = clock_went_back;
  state.clock_ever_went_back = state.clock_ever_went_back || clock_went_back;
}

const Incarnations::Lane* Incarnations::lane(HostNumber from, HostNumber to) const {
  const auto found = lanes_.find({from, to});
  return found == lanes_.end() ? nullptr : &found->second;
}

void Incarnations::session_announced(HostNumber self, HostNumber to, const wire::Opening& opening) {
  Lane& lane = lanes_[{self, to}];
  lane.sessions[opening.session] = hosts_[self].incarnation;
  if (opening.epoch > lane.last_epoch) lane.last_session = opening.session;
  lane.last_epoch = std::max(lane.last_epoch, opening.epoch);
}

/// Returns true if an earlier incarnation of the host announced this session to `to`.
bool Incarnations::is_of_earlier_incarnation(HostNumber host, HostNumber to, std::uint32_t session) const {
  const Lane* const announced = lane(host, to);
  if (announced == nullptr) return false;
  const auto found = announced->sessions.find(session);
  return found != announced->sessions.end() && found->second < hosts_[host].incarnation;
}

/// Returns true if this is the session that the host announced to `to` last, and its present incarnation
/// announced it.
bool Incarnations::is_last_session(HostNumber host, HostNumber to, std::uint32_t session) const {
  const Lane* const announced = lane(host, to);
  if (session == 0 || announced == nullptr || announced->last_session != session) return false;
  const auto found = announced->sessions.find(session);
  return found != announced->sessions.end() && found->second == hosts_[host].incarnation;
}

bool Incarnations::frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now) {
  ++moment_;
  Lane& lane = lanes_[{packet.from, at}];
  const bool stale = is_stale(at, packet);
  if (view.session != 0 && (stale || is_of_earlier_incarnation(at, packet.from, view.session))) return false;
  if (stale && hosts_[at].incarnation > kFirstIncarnation) lane.stale_call_read = hosts_[at].incarnation;
  if (lane.known_by != hosts_[at].incarnation) lane.known_incarnation = lane.proven_incarnation = 0;
  lane.known_by = hosts_[at].incarnation;
  const bool ended = packet.incarnation < hosts_[packet.from].incarnation;
  if (lane.known_incarnation == 0 && ended) lane.met_ended_peer = hosts_[at].incarnation;
  const bool names_ours = is_last_session(at, packet.from, view.session);
  if (names_ours && lane.named != view.session) {
    lane.named = view.session;
    lane.named_by = packet.incarnation;
  }
  // Of two processes that name our session, the engine refuses the second.
  const bool names_our_session = names_ours && lane.named_by == packet.incarnation;
  if (names_our_session && packet.incarnation > lane.proven_incarnation) {
    if (ended) lane.met_ended_peer = hosts_[at].incarnation;  // openings that came before prove nothing
    lane.proven_incarnation = packet.incarnation;
    lane.proven_time = now;
  }
  if (names_our_session && !ended &&
      (lane.peer_session != view.session || lane.peer_incarnation != packet.incarnation)) {
    lane.peer_session = view.session;
    lane.peer_incarnation = packet.incarnation;
    lane.peer_heard_at = moment_;
  }
  // After the first frame, an opening proves nothing about its sender unless the frame names a session of
  // ours. The answer to a forged opening names a session that never was.
  const bool proven =
      lane.known_incarnation == 0 || lanes_[{at, packet.from}].sessions.contains(view.session);
  if (proven) lane.known_incarnation = std::max(lane.known_incarnation, packet.incarnation);
  return true;
}

void Incarnations::introduction_sent(HostNumber self, HostNumber to, std::uint32_t session, Time now) const {
  const Lane* const heard = lane(to, self);
  if (heard == nullptr || heard->known_by != hosts_[self].incarnation) return;
  const auto incarnation = heard->sessions.find(session);
  const bool over = incarnation != heard->sessions.end() && incarnation->second < heard->proven_incarnation &&
                    heard->proven_time < now && !hosts_[to].clock_ever_went_back;
  if (!over) return;
  throw SafetyFailure("host " + std::to_string(self) + " introduces itself to incarnation " +
                      std::to_string(incarnation->second) + " of host " + std::to_string(to) +
                      " though it has heard of incarnation " + std::to_string(heard->proven_incarnation));
}

bool Incarnations::has_met(HostNumber host, HostNumber peer) const {
  const Lane* const heard = lane(peer, host);
  return heard != nullptr && heard->known_by == hosts_[host].incarnation &&
         heard->proven_incarnation == hosts_[peer].incarnation;
}

std::uint32_t Incarnations::known(HostNumber from, HostNumber to) const {
  const Lane* const heard = lane(to, from);
  const bool known =
      heard != nullptr && heard->known_incarnation != 0 && heard->known_by == hosts_[from].incarnation;
  return known ? heard->known_incarnation : hosts_[to].incarnation;
}

/// An opening names no incarnation of its receiver. If a new incarnation takes an opening for its own that
/// was meant for an earlier one, it has a session that the peer has closed, until one of the two is reset.
/// Or an incarnation that has ended meanwhile has answered an opening. Its session has to be closed, perhaps
/// by the next incarnation, if this one takes a repeated opening for its own.
bool Incarnations::session_uncertain(HostNumber host, HostNumber by) const {
  const Lane* const heard = lane(by, host);
  const std::uint32_t incarnation = hosts_[host].incarnation;
  return heard != nullptr && (heard->stale_call_read == incarnation || heard->met_ended_peer == incarnation);
}

/// Returns true if, by that moment, the host had read a frame of the present incarnation of `from` that
/// named the session which the host announced last.
bool Incarnations::heard_by(HostNumber host, HostNumber from, std::uint64_t moment) const {
  const Lane* const heard = lane(from, host);
  return heard != nullptr && heard->peer_incarnation == hosts_[from].incarnation &&
         heard->peer_heard_at <= moment && is_last_session(host, from, heard->peer_session);
}

/// After an outage the two count as having met once each has heard the other name its session again. Until
/// then either may have closed the session.
void Incarnations::connection_changed(HostNumber one, HostNumber other, bool connected, Time now) {
  Interruption& state = interruptions_[{std::min(one, other), std::max(one, other)}];
  if (state.now == !connected) return;
  state.now = !connected;
  (connected ? state.until : state.since) = now;
  if (connected && now - state.since >= outage_min(one, other)) {
    state.was_outage = true;
    lanes_[{one, other}].peer_session = lanes_[{other, one}].peer_session = 0;
  }
}

bool Incarnations::cut_off(HostNumber one, HostNumber other, Time since) const {
  const auto found = interruptions_.find({std::min(one, other), std::max(one, other)});
  return found != interruptions_.end() && (found->second.now || found->second.until > since);
}

/// Returns true if there was an outage between the two.
bool Incarnations::had_outage(HostNumber one, HostNumber other) const {
  const auto found = interruptions_.find({std::min(one, other), std::max(one, other)});
  if (found == interruptions_.end()) return false;
  return found->second.was_outage;
}

/// Returns true if the network between the two is interrupted, and perhaps for longer than peers wait. Then
/// the two may give each other up, whether or not they have met.
bool Incarnations::may_be_given_up(HostNumber self, HostNumber peer) const {
  return outage_min(self, peer) != Duration::max() && cut_off(self, peer);
}

void Incarnations::hides(HostNumber host) {
  hosts_[host].hidden = true;
  for (HostNumber other = 0; other < hosts_.size(); ++other) {
    if (!has_met(other, host)) hosts_[host].hidden_from.push_back(other);
  }
}

bool Incarnations::operation_failed(HostNumber self, HostNumber peer, const OperationStart& started) {
  if (!error_permitted(self, peer, started)) return false;
  lost_[{self, peer}] = hosts_[self].incarnation;
  return true;
}

/// An operation that was begun before the two met may have been given up while the peer was hidden, even if
/// they have met since. The same holds for an operation that was begun before the peer began.
bool Incarnations::error_permitted(HostNumber self, HostNumber peer, const OperationStart& started) const {
  const Host& other = hosts_[peer];
  if (may_be_given_up(self, peer) || lacks_contact(self, peer)) return true;
  const auto lost = lost_.find({self, peer});
  const bool is_lost = lost != lost_.end() && lost->second == hosts_[self].incarnation;
  if ((other.hidden || is_lost) && !has_met(self, peer)) return true;
  if (!other.alive || other.clock_went_back || hosts_[self].clock_went_back) return true;
  const bool had_met = heard_by(self, peer, started.moment) && heard_by(peer, self, started.moment);
  if (had_met) return false;
  if (std::ranges::find(other.hidden_from, self) != other.hidden_from.end()) return true;
  return other.incarnation != started.incarnation || started.moment < other.began_at ||
         session_uncertain(self, peer) || session_uncertain(peer, self) || had_outage(self, peer);
}

}  // namespace cluster::sim
