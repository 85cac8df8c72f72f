// Which interface of this side is joined with which address of the other: pure. Interfaces and addresses of
// one network belong together; where nothing says so, the place in the list decides. Nobody and nothing is
// left over if it can be helped: who has one interface gets a rail to each address of the peer.
//
// What comes out is a guess. Probing finds out which of it is true (rails/health.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"

namespace cluster::rails {

/// An interface of this side, as peers and the log call it.
struct OwnRail {
  SocketAddress address;
  unsigned prefix_bits = 0;  ///< of its network; 0: not known
  std::string label;
};

/// One way to a peer: a link of this side, by its number, and an address of the other.
struct Way {
  std::uint8_t link = 0;
  SocketAddress to;
  friend bool operator==(const Way&, const Way&) = default;
};

inline constexpr std::size_t kRailsMax = 8;  ///< towards one peer

/// True if `address` lies in the network of `rail`.
bool in_network(const OwnRail& rail, const SocketAddress& address);

/// The interface that `address` is best reached by: one of its network, else the first.
std::uint8_t link_towards(std::span<const OwnRail> own, const SocketAddress& address);

/// True if an interface of this side has the same address, whatever the port: then it leads no further than
/// this node, be it that the peer lives here or that both sides have a private network of the same numbers.
bool is_ours(std::span<const OwnRail> own, const SocketAddress& address);

/// The ways besides `first`, at most kRailsMax - 1. `peer` are the addresses of the other side in its own
/// order.
std::vector<Way> further_ways(std::span<const OwnRail> own, std::span<const SocketAddress> peer,
                              const Way& first);

}  // namespace cluster::rails
