#include "multipath/address_pairing.h"

#include <algorithm>

namespace cluster::multipath {

bool in_subnet(const Rail& rail, const SocketAddress& address) {
  return rail.prefix_bits != 0 && rail.address.same_prefix(address, rail.prefix_bits);
}

std::uint8_t rail_towards(std::span<const Rail> rails, const SocketAddress& address) {
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (in_subnet(rails[i], address)) return static_cast<std::uint8_t>(i);
  }
  return 0;
}

bool is_local_address(std::span<const Rail> rails, const SocketAddress& address) {
  return std::any_of(rails.begin(), rails.end(),
                     [&](const Rail& rail) { return rail.address.same_host(address); });
}

std::vector<link::Path> further_paths(std::span<const Rail> rails, std::span<const SocketAddress> peer,
                                      const link::Path& first) {
  if (rails.empty()) return {};
  std::vector<link::Path> paths;
  std::vector<bool> used(peer.size());
  const auto mark_used = [&](const SocketAddress& address) {
    const auto found = std::ranges::find(peer, address);
    if (found != peer.end()) used[static_cast<std::size_t>(found - peer.begin())] = true;
  };
  const auto add = [&](std::size_t link, const SocketAddress& to) {
    mark_used(to);
    if (rails[link].address.family() != to.family() || paths.size() + 1 >= kPathsMax) return;
    paths.push_back({to, {}, false, static_cast<std::uint8_t>(link)});
  };
  mark_used(first.to);
  for (std::size_t link = 0; link < rails.size(); ++link) {
    if (link == first.link) continue;
    // The best address for a rail is one on its subnet. Among equals, an address that is not paired yet is
    // better. If two addresses are still equal, the better one has the same position among the addresses as
    // the rail has among the rails.
    const SocketAddress* best = nullptr;
    int best_score = -1;
    for (std::size_t i = 0; i < peer.size(); ++i) {
      if (peer[i].family() != rails[link].address.family()) continue;
      if (peer[i].verbs() && !in_subnet(rails[link], peer[i])) continue;
      const int score = (in_subnet(rails[link], peer[i]) ? 4 : 0) + (used[i] ? 0 : 2) + (i == link ? 1 : 0);
      if (score > best_score) best = &peer[i];
      best_score = std::max(best_score, score);
    }
    if (best != nullptr) add(link, *best);
  }
  for (std::size_t i = 0; i < peer.size(); ++i) {
    if (!used[i]) add(rail_towards(rails, peer[i]), peer[i]);
  }
  return paths;
}

}  // namespace cluster::multipath
