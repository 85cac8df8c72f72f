// Which interface of this side is joined with which address of the other: pure. Interfaces and addresses of
// one network belong together; where nothing says so, the place in the list decides. Nobody and nothing is
// left over if it can be helped: who has one interface gets a rail to each address of the peer.
//
// What comes out is a guess. Probing finds out which of it is true (multipath/path_validator.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"

namespace cluster::multipath {

/// An interface of this side, as peers and the log call it.
struct Rail {
  SocketAddress address;
  unsigned prefix_bits = 0;  ///< of its network; 0: not known
  std::string label;
};

/// One way to a peer: a link of this side, by its number, and an address of the other.
struct PathCandidate {
  std::uint8_t link = 0;
  SocketAddress to;
  friend bool operator==(const PathCandidate&, const PathCandidate&) = default;
};

inline constexpr std::size_t kPathsMax = 8;  ///< towards one peer

/// True if `address` lies in the network of `rail`.
bool in_subnet(const Rail& rail, const SocketAddress& address);

/// The interface that `address` is best reached by: one of its network, else the first.
std::uint8_t rail_towards(std::span<const Rail> own, const SocketAddress& address);

/// True if an interface of this side has the same address, whatever the port: then it leads no further than
/// this node, be it that the peer lives here or that both sides have a private network of the same numbers.
bool is_local_address(std::span<const Rail> own, const SocketAddress& address);

/// The ways besides `first`, at most kPathsMax - 1. `peer` are the addresses of the other side in its own
/// order.
std::vector<PathCandidate> further_paths(std::span<const Rail> own, std::span<const SocketAddress> peer,
                                         const PathCandidate& first);

}  // namespace cluster::multipath
