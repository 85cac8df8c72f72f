#include "transport/admission_control.h"

#include <algorithm>
#include <utility>

namespace cluster::transport {
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

bool AdmissionControl::forgettable(Time now, const Peer& peer) const {
  return !peers_.held(peer) && now >= peer.closed_at + settings_.forget_after() &&
         !peers_.in_address_vector(peer.name()) && !messenger_.references(peer.channel);
}

void AdmissionControl::note_store_full() {
  ++environment_.counters.unexpected_full;
  if (std::exchange(logged_store_full_, true)) return;
  environment_.log.warn(
      "the store for unexpected messages is full: senders wait until the application posts matching "
      "receives (further occurrences are only counted)");
}

}  // namespace cluster::transport
