#include "engine/admission_control.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cluster::engine {
namespace {

/// Bytes held for the peer, in constant time: frames on their way to it count as whole ones.
std::size_t held_for(Peer& peer) {
  reliability::Flow& flow = *peer.flow;
  return sizeof peer + sizeof flow + flow.receiver().footprint() + peer.channel.tx.control.footprint() +
         flow.queue().window().span() * (reliability::kHeadroom + wire::kFrameMax);
}

}  // namespace

bool AdmissionControl::admits(Time now, const SocketAddress& name, std::size_t open) {
  if (peers_.known(name)) return true;
  if (open >= settings_.flows_max) return false;
  if (peers_.find(name) != nullptr) return true;
  const std::size_t limit = 2 * settings_.flows_max;
  if (peers_.all().size() >= std::min(forget_from_, limit) && now >= next_forgetting_) {
    next_forgetting_ = now + kForgetInterval;
    peers_.forget([&](const Peer& peer) { return forgettable(now, peer); });
    forget_from_ = std::max(kPeersMin, 2 * peers_.all().size());
  }
  return peers_.all().size() < limit;
}

void AdmissionControl::account_unknown(Time now, Peer& peer) {
  const bool counts = peer.flow != nullptr && !peers_.is_member(peer.channel);
  if (!counts && peer.flow != nullptr) peer.flow->paths().allow_everywhere(true);  // the application has inserted it meanwhile
  peers_.set_held(peer, counts ? held_for(peer) : 0);
  if (counts && peer.channel.rma.refused >= kRefusedAccessesMax) peers_.mark_failed(peer, Status::access);
  if (peers_.unknown_bytes() > settings_.unknown_bytes_max) drop_unknown(now);
}

void AdmissionControl::drop_unknown(Time now) {
  std::vector<Peer*> sources;
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->contact.held != 0) sources.push_back(peer.get());
  }
  const auto active = [now](const Peer& peer) { return now - peer.heard_at < kActive; };
  std::ranges::sort(sources, [&](const Peer* a, const Peer* b) {
    if (active(*a) != active(*b)) return active(*b);
    return active(*a) ? a->contact.held > b->contact.held : a->heard_at < b->heard_at;
  });
  const std::size_t target = settings_.unknown_bytes_max - settings_.unknown_bytes_max / kFreedPart;
  for (Peer* peer : sources) {
    if (peers_.unknown_bytes() <= target) break;
    ++environment_.counters.unknown_dropped;
    peers_.set_held(*peer, 0);
    peers_.mark_failed(*peer, Status::no_memory);
  }
  if (now < next_warning_) return;
  next_warning_ = now + kWarningInterval;
  environment_.log.warn(
      "sources that are not in the address vector made this endpoint hold %zu MB: some are dropped, the longest idle "
      "first (further times are counted as unknown_dropped)",
      settings_.unknown_bytes_max >> 20);
}

bool AdmissionControl::forgettable(Time now, const Peer& peer) const {
  const bool closed = peer.flow == nullptr && peer.pending.flow == nullptr && peer.outbox == nullptr &&
                      peer.inbox == nullptr && !peer.self;
  return closed && now >= peer.closed_sessions.closed_at + settings_.peer_timeout &&
         !peers_.in_address_vector(peer.name()) && !messenger_.references(peer.channel);
}

void AdmissionControl::note_store_full() {
  ++environment_.counters.unexpected_full;
  if (std::exchange(logged_store_full_, true)) return;
  environment_.log.warn(
      "the unexpected store is full: senders wait until receives take messages out of it (further times are "
      "only counted)");
}

void AdmissionControl::note_no_memory() {
  ++environment_.counters.no_memory;
  if (std::exchange(logged_no_memory_, true)) return;
  environment_.log.warn(
      "this process has no memory left: what arrives waits, and its senders with it, until there is some (further "
      "times are only counted)");
}

}  // namespace cluster::engine
