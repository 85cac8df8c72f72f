// Pairs the rails of this side with the addresses of the peer; pure functions. A rail is one local interface
// that the endpoint uses; a path is a rail and an address of the peer. Rails are paired with addresses on
// their subnets. If the subnets do not decide, the place in the list does. As few addresses as possible stay
// unpaired: a side with one rail gets a path to each address of the peer.
//
// The result is a guess; challenges find out which paths work (multipath/path_validator.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "link/link.h"

namespace cluster::multipath {

struct Rail {
  SocketAddress address;
  unsigned prefix_bits = 0;  ///< of its subnet; 0: unknown
  std::string label;         ///< for the log
};

inline constexpr std::size_t kPathsMax = 8;  ///< IP paths to one peer

bool in_subnet(const Rail& rail, const SocketAddress& address);

/// Returns the rail that reaches `address` best: one on its subnet, else the first.
std::uint8_t rail_towards(std::span<const Rail> rails, const SocketAddress& address);

/// Returns true if a rail of this side has the same IP address, which then leads no further than this node.
/// (Perhaps both nodes have the same private network.)
bool is_local_address(std::span<const Rail> rails, const SocketAddress& address);

/// Returns the paths beside `first`, at most kPathsMax - 1. `peer` lists the peer's addresses in the peer's
/// order.
std::vector<link::Path> further_paths(std::span<const Rail> rails, std::span<const SocketAddress> peer,
                                      const link::Path& first);

}  // namespace cluster::multipath
