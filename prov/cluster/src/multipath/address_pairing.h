// Pure functions that pair this side's rails with the peer's addresses. A rail is one local interface that
// the endpoint uses. A path is a rail together with an address of the peer. Each rail is paired with an
// address on its subnet, if there is one. If the subnets do not decide, the positions in the lists of rails
// and addresses do. As few addresses as possible stay unpaired. For example, a side with one rail gets a path
// to each address of the peer. A queue pair is paired only with a queue pair whose GID is on its subnet.
//
// The result is a guess. Challenges show later which paths work (multipath/path_validator.h).
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
  unsigned prefix_bits = 0;   ///< prefix length of the subnet; 0: unknown
  std::string label;          ///< name of the rail in log lines
  std::size_t frame_max = 0;  ///< of an RDMA device: the longest frame that it carries
  bool preferred = false;     ///< other rails carry frames only while no path over a preferred rail works
};

inline constexpr std::size_t kPathsMax = 8;  ///< the largest number of IP paths to one peer

bool in_subnet(const Rail& rail, const SocketAddress& address);

/// Returns the number of the rail that reaches `address` best: a rail on the same subnet, otherwise the
/// first.
std::uint8_t rail_towards(std::span<const Rail> rails, const SocketAddress& address);

/// Returns true if a rail of this side has the same IP address. Frames to such an address do not leave this
/// node. (A peer lists such an address if, for example, each node has a network for its own containers, with
/// the same private addresses.)
bool is_local_address(std::span<const Rail> rails, const SocketAddress& address);

/// Returns the paths in addition to `first`, at most kPathsMax - 1. `peer` lists the peer's addresses in the
/// peer's order.
std::vector<link::Path> further_paths(std::span<const Rail> rails, std::span<const SocketAddress> peer,
                                      const link::Path& first);

}  // namespace cluster::multipath
