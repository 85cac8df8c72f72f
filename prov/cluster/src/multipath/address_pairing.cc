#include "multipath/address_pairing.h"

#include <algorithm>

namespace cluster::multipath {
namespace {

bool same_bits(ConstBytes a, ConstBytes b, unsigned bits) {
  const std::size_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || std::to_integer<unsigned>(a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

class AddressPairing {
 public:
  AddressPairing(std::span<const Rail> rails, std::span<const SocketAddress> peer, const PathCandidate& first)
      : rails_(rails), peer_(peer), first_(first), used_(peer.size()) {
    mark_used(first.to);
  }

  std::vector<PathCandidate> paths() {
    for (std::size_t link = 0; link < rails_.size(); ++link) {
      if (link != first_.link) add_for(link);
    }
    for (std::size_t i = 0; i < peer_.size(); ++i) {
      if (!used_[i]) add(rail_towards(rails_, peer_[i]), peer_[i]);
    }
    return std::move(paths_);
  }

 private:
  /// The best address for a rail: of its subnet, else not paired yet, else of the same place in the list.
  void add_for(std::size_t link) {
    const SocketAddress* best = nullptr;
    int best_score = -1;
    for (std::size_t i = 0; i < peer_.size(); ++i) {
      if (peer_[i].family() != rails_[link].address.family()) continue;
      const int score =
          (in_subnet(rails_[link], peer_[i]) ? 4 : 0) + (used_[i] ? 0 : 2) + (i == link ? 1 : 0);
      if (score > best_score) best = &peer_[i];
      best_score = std::max(best_score, score);
    }
    if (best != nullptr) add(static_cast<std::uint8_t>(link), *best);
  }

  void add(std::uint8_t link, const SocketAddress& to) {
    mark_used(to);
    if (rails_[link].address.family() != to.family() || paths_.size() + 1 >= kPathsMax) return;
    paths_.push_back({link, to});
  }

  void mark_used(const SocketAddress& address) {
    const auto found = std::find(peer_.begin(), peer_.end(), address);
    if (found != peer_.end()) used_[static_cast<std::size_t>(found - peer_.begin())] = true;
  }

  std::span<const Rail> rails_;
  std::span<const SocketAddress> peer_;
  const PathCandidate& first_;
  std::vector<bool> used_;
  std::vector<PathCandidate> paths_;
};

}  // namespace

bool in_subnet(const Rail& rail, const SocketAddress& address) {
  return rail.prefix_bits != 0 && rail.address.family() == address.family() &&
         same_bits(rail.address.ip(), address.ip(), rail.prefix_bits);
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

std::vector<PathCandidate> further_paths(std::span<const Rail> rails, std::span<const SocketAddress> peer,
                                         const PathCandidate& first) {
  return rails.empty() ? std::vector<PathCandidate>{} : AddressPairing(rails, peer, first).paths();
}

}  // namespace cluster::multipath
