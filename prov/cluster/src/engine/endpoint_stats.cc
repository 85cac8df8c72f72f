#include "engine/endpoint_stats.h"

#include "engine/core.h"

namespace cluster::engine {

const char* Core::path_of(const Peer& peer) const {
  if (parts_.service == EndpointType::dgram) return parts_.link->name();
  if (peer.channel.carrier == nullptr) return "none";
  if (peer.self) return "self";
  return peer.outbox != nullptr ? "shm" : parts_.link->name();
}

const char* Core::path_to(std::uint64_t handle) {
  const Peer* peer = peers_.by_handle(handle);
  return peer == nullptr ? nullptr : path_of(*peer);
}

PeerStats Core::look_at(const Peer& peer) const {
  PeerStats seen;
  seen.name = peer.name();
  seen.path = path_of(peer);
  seen.why = parts_.service == EndpointType::dgram ? "datagrams always go by the link" : peer.why;
  seen.stored = peer.channel.stored;
  seen.spare = peer.channel.credit_limit - peer.channel.charged;
  seen.lent = peer.channel.charged_by_peer - peer.channel.released;
  seen.footprint = sizeof peer + peer.why.capacity() + peer.channel.control.footprint();
  if (peer.flow != nullptr) {
    seen.flow = peer.flow->stats();
    seen.footprint += seen.flow->footprint;
  }
  if (peer.suitor != nullptr) seen.footprint += peer.suitor->stats().footprint;
  if (peer.outbox != nullptr || peer.inbox != nullptr) {
    seen.rings = {.single_copy = peer.channel.memory != nullptr,
                  .unread = peer.outbox != nullptr && !peer.outbox->drained()};
    if (peer.outbox != nullptr) seen.footprint += peer.outbox->footprint();
    if (peer.inbox != nullptr) seen.footprint += peer.inbox->footprint();
  }
  return seen;
}

EndpointStats Core::stats() const {
  EndpointStats seen{.now = parts_.environment.clock.now(),
                     .since = started_,
                     .counters = parts_.environment.counters,
                     .unexpected = messenger_.stored(),
                     .peers = {}};
  seen.peers.reserve(peers_.all().size());
  for (const std::unique_ptr<Peer>& peer : peers_.all()) seen.peers.push_back(look_at(*peer));
  return seen;
}

}  // namespace cluster::engine
