// Chooses the interfaces that an endpoint uses among those that os/ has found; pure functions.
//
// rank_interfaces() sorts the interfaces, best default first. It makes one entry per interface and address
// family, each with its reason as text for fi_info and the log. Interfaces that reach other nodes come before
// loopback. Next count, in this order: carrier, a configured rather than a self-assigned address
// (169.254/16), the kind of interface, speed, and the kernel's order. Adapters, and bridges with an adapter
// as port, come before what containers and tunnels create. IPv4 comes before IPv6.
//
// choose_rails() chooses further interfaces beside the one with the endpoint's address, by FI_CLUSTER_RAILS
// (fi_cluster(7)). Path validation finds out later, for each peer, whether a rail reaches it
// (multipath/path_validator.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "link/interface.h"

namespace cluster::multipath {

struct RankedInterface {
  const link::Interface* interface = nullptr;  ///< borrowed from the list that was ranked
  SocketAddress address;                       ///< with port 0; empty if the interface has no usable address
  std::string reason;
  bool usable = false;
};

/// Best first; unusable ones (down, without an address) come last.
std::vector<RankedInterface> rank_interfaces(std::span<const link::Interface> interfaces);

/// Returns the further rails, best first, out of `addresses`, which are sorted best first. `primary` is the
/// interface with the endpoint's address. `unknown` receives the names in `rule` of which no interface has a
/// usable address.
std::vector<const link::InterfaceAddress*> choose_rails(std::span<const link::InterfaceAddress> addresses,
                                                        const link::InterfaceAddress& primary,
                                                        const std::string& rule,
                                                        std::vector<std::string>& unknown);

}  // namespace cluster::multipath
