// Pure functions that choose the interfaces of an endpoint from those that os/ has found.
//
// rank_interfaces() sorts the interfaces. The first one is the default. The function creates one entry for
// each address family in which an interface has a usable address, and one entry for an unusable interface.
// Each entry has a text for fi_info and the log. Interfaces that reach other nodes come before loopback. The
// further criteria are, in this order: a link partner; a configured address, not a self-assigned one
// (169.254/16); the kind of interface; its speed; the kernel's order. Adapters, and bridges that have an
// adapter as a port, come before the interfaces that containers and tunnels create. Of two entries of one
// interface that are otherwise equal, IPv4 comes first.
//
// choose_rails() chooses interfaces in addition to the one with the endpoint's address, as FI_CLUSTER_RAILS
// says (fi_cluster_network(7)). Later, path validation shows for each peer which rails reach the peer
// (multipath/path_validator.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "link/interface.h"

namespace cluster::multipath {

struct RankedInterface {
  const link::Interface* interface = nullptr;  ///< an element of the list that was ranked
  SocketAddress address;                       ///< with port 0; empty if the interface has no usable address
  std::string reason;
  bool usable = false;
};

/// Returns the interfaces, with the best first. Unusable interfaces (down, or without an address) come last.
std::vector<RankedInterface> rank_interfaces(std::span<const link::Interface> interfaces);

/// Returns the further rails out of `addresses`, which must be sorted with the best first. `primary` is the
/// interface with the endpoint's address, and `rule` is the value of FI_CLUSTER_RAILS. If `rule` names an
/// interface that does not exist or has no usable address, appends the name to `unknown`.
std::vector<const link::InterfaceAddress*> choose_rails(std::span<const link::InterfaceAddress> addresses,
                                                        const link::InterfaceAddress& primary,
                                                        const std::string& rule,
                                                        std::vector<std::string>& unknown);

}  // namespace cluster::multipath
