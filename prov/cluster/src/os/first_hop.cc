#include "os/first_hop.h"

#include "base/end_of_memory.h"

namespace cluster::os {

/// If there is no memory for an entry, the hardware address of the path is used.
bool FirstHops::agrees(Clock& clock, const link::Path& path, std::uint32_t interface) {
  const SocketAddress host = path.to.with_port(0);
  auto found = entries_.find(host);
  if (found == entries_.end()) {
    if (entries_.size() == kPeersMax) entries_.clear();
    if (!enough_memory_for([&] { found = entries_.try_emplace(host).first; })) return true;
  }
  Entry& its = found->second;
  if (its.agrees) return true;
  const Time now = clock.now();
  if (now < its.ask_at) return false;
  const NextHop hop = ask_(path.to.ip(), interface);
  const bool unresolved = hop.state == NextHop::State::unresolved;
  its.unresolved = unresolved ? its.unresolved + 1 : 0;
  its.agrees = unresolved ? its.unresolved == kUnresolvedMax
                          : !hop.hardware_address || *hop.hardware_address == path.mac;
  its.ask_at = now + (unresolved ? kAskAgain : kAskSeldom);
  return its.agrees;
}

}  // namespace cluster::os
