#include "os/unlisted_peers.h"

#include <algorithm>

#include "base/end_of_memory.h"

namespace cluster::os {

/// Returns null if there is no memory. Forgets all peers if there are too many, because forged frames can
/// name any number of them.
UnlistedPeers::Entry* UnlistedPeers::entry_of(const SocketAddress& peer) {
  const auto found = entries_.find(peer);
  if (found != entries_.end()) return &found->second;
  if (entries_.size() == kPeersMax) entries_.clear();
  Entry* entry = nullptr;
  const bool made = enough_memory_for([&] { entry = &entries_[peer]; });
  return made ? entry : nullptr;
}

void UnlistedPeers::note(Time now, const SocketAddress& peer, const HardwareAddress& mac) {
  Entry* const entry = entry_of(peer);
  if (entry == nullptr) return;
  entry->mac = mac;
  entry->shown_at = now;
  entry->ask_again = kAskAgain;
}

const HardwareAddress* UnlistedPeers::find(const SocketAddress& peer, Time since) const {
  const auto found = entries_.find(peer);
  const bool shown = found != entries_.end() && found->second.shown_at != kNotShown;
  return shown && found->second.shown_at >= since ? &found->second.mac : nullptr;
}

bool UnlistedPeers::takes_turn(const SocketAddress& peer) {
  const auto found = entries_.find(peer);
  if (found == entries_.end()) return false;
  found->second.turn = !found->second.turn;
  return found->second.turn;
}

UnlistedPeers::Verdict UnlistedPeers::ask_all(Time now, const SocketAddress& peer) {
  Entry* const entry = entry_of(peer);
  if (entry == nullptr || now < entry->ask_at) return Verdict::no;
  next_ = std::max(next_, now - kBurst * kInterval);
  if (next_ > now) return Verdict::later;
  entry->ask_at = now + entry->ask_again;
  entry->ask_again = std::min(2 * entry->ask_again, kAskAgainMax);
  next_ += kInterval;
  return Verdict::now;
}

}  // namespace cluster::os
