#include "sim/lives.h"

#include <algorithm>

namespace cluster::sim {

void Lives::begins(HostNumber host, Time now, bool clock_went_back) {
  Host& state = hosts_[host];
  ++state.life;
  state.alive = true;
  state.began = now;
  state.clock_went_back = clock_went_back;
  state.clock_ever_went_back = state.clock_ever_went_back || clock_went_back;
}

const Lives::Lane* Lives::lane(HostNumber from, HostNumber to) const {
  const auto found = lanes_.find({from, to});
  return found == lanes_.end() ? nullptr : &found->second;
}

void Lives::tells(HostNumber self, HostNumber to, const wire::Opening& opening) {
  Lane& lane = lanes_[{self, to}];
  lane.sessions[opening.session] = hosts_[self].life;
  if (opening.epoch > lane.last_epoch) lane.last_session = opening.session;
  lane.last_epoch = std::max(lane.last_epoch, opening.epoch);
}

/// True if the session is one that an earlier life of the host has told `to`.
bool Lives::is_of_earlier_life(HostNumber host, HostNumber to, std::uint32_t session) const {
  const Lane* const told = lane(host, to);
  if (told == nullptr) return false;
  const auto found = told->sessions.find(session);
  return found != told->sessions.end() && found->second < hosts_[host].life;
}

/// True if the session is the last that the host has told `to`, and its present life has.
bool Lives::is_last_session(HostNumber host, HostNumber to, std::uint32_t session) const {
  const Lane* const told = lane(host, to);
  if (session == 0 || told == nullptr || told->last_session != session) return false;
  const auto found = told->sessions.find(session);
  return found != told->sessions.end() && found->second == hosts_[host].life;
}

bool Lives::frame_read(HostNumber at, const Packet& packet, const wire::FrameView& view, Time now) {
  ++moment_;
  Lane& lane = lanes_[{packet.from, at}];
  const bool stale = is_stale(at, packet);
  if (view.session != 0 && (stale || is_of_earlier_life(at, packet.from, view.session))) return false;
  if (stale && hosts_[at].life > kFirstLife) lane.misled = hosts_[at].life;
  if (lane.known_by != hosts_[at].life) lane.known_life = lane.proven_life = 0;
  lane.known_by = hosts_[at].life;
  const bool ended = packet.life < hosts_[packet.from].life;
  if (lane.known_life == 0 && ended) lane.outlived = hosts_[at].life;
  const bool names_ours = is_last_session(at, packet.from, view.session);
  if (names_ours && lane.named != view.session) {
    lane.named = view.session;
    lane.named_by = packet.life;
  }
  // Who comes second is refused, and so not heard of.
  const bool turns_to_us = names_ours && lane.named_by == packet.life;
  if (turns_to_us && packet.life > lane.proven_life) {
    if (ended) lane.outlived = hosts_[at].life;  // whoever has called meanwhile could be anybody
    lane.proven_life = packet.life;
    lane.proven_at = now;
  }
  if (turns_to_us && !ended && (lane.turned_to != view.session || lane.turned_life != packet.life)) {
    lane.turned_to = view.session;
    lane.turned_life = packet.life;
    lane.turned_moment = moment_;
  }
  // First words of a next life could be anybody's: they end nothing until they have named our session.
  const bool proven = view.session != 0 || lane.known_life == 0;
  if (proven) lane.known_life = std::max(lane.known_life, packet.life);
  return true;
}

void Lives::introduces(HostNumber self, HostNumber to, std::uint32_t session, Time now) const {
  const Lane* const heard = lane(to, self);
  if (heard == nullptr || heard->known_by != hosts_[self].life) return;
  const auto life = heard->sessions.find(session);
  const bool over = life != heard->sessions.end() && life->second < heard->proven_life &&
                    heard->proven_at < now && !hosts_[to].clock_ever_went_back;
  if (!over) return;
  throw SafetyFailure("host " + std::to_string(self) + " introduces itself to life " +
                      std::to_string(life->second) + " of host " + std::to_string(to) +
                      " though it has heard of life " + std::to_string(heard->proven_life));
}

std::uint32_t Lives::known(HostNumber from, HostNumber to) const {
  const Lane* const heard = lane(to, from);
  const bool known = heard != nullptr && heard->known_life != 0 && heard->known_by == hosts_[from].life;
  return known ? heard->known_life : hosts_[to].life;
}

/// First words to an earlier life name no life: a new one may take them for its own, and then has a session
/// with a peer that has given it up, until one of the two is told. Or what was said to nobody in particular
/// was answered by a life that has ended meanwhile: the session is to be given up, also by a next life that
/// has taken a repeated call for its own.
bool Lives::confused(HostNumber host, HostNumber by) const {
  const Lane* const heard = lane(by, host);
  const std::uint32_t life = hosts_[host].life;
  return heard != nullptr && (heard->misled == life || heard->outlived == life);
}

/// True if by that moment the host had heard the present life of `from` name the session it has told it
/// last.
bool Lives::heard_since(HostNumber host, HostNumber from, std::uint64_t moment) const {
  const Lane* const heard = lane(from, host);
  return heard != nullptr && heard->turned_life == hosts_[from].life && heard->turned_moment <= moment &&
         is_last_session(host, from, heard->turned_to);
}

bool Lives::excused(HostNumber self, HostNumber peer, const Begun& begun) const {
  const Host& other = hosts_[peer];
  if (silence_ || !other.alive || other.clock_went_back || hosts_[self].clock_went_back) return true;
  const bool had_met = heard_since(self, peer, begun.moment) && heard_since(peer, self, begun.moment);
  if (had_met) return false;
  return other.life != begun.life || confused(self, peer) || confused(peer, self);
}

}  // namespace cluster::sim
