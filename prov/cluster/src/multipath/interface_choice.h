// Which interfaces an endpoint uses, of those that os/ found: pure.
//
// rank_interfaces() says which is the best default: one entry per interface and address family, each with its
// reason as text, so that fi_info and the log can say why. Interfaces that reach other nodes come before loopback, with carrier before
// without, a configured address before a self-assigned one (169.254/16), adapters (and a bridge with an adapter as port) before what
// containers and tunnels create, then speed, then the kernel's order; IPv4 before IPv6.
//
// choose_rails() says which are used beside the one that carries the endpoint's address, by FI_CLUSTER_RAILS (fi_cluster(7)). Whether a
// rail reaches a peer is found out later, for each peer (multipath/path_validator.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "link/interface.h"

namespace cluster::multipath {

struct RankedInterface {
  const link::Interface* interface = nullptr;  ///< borrowed from the list that was ranked
  SocketAddress address;                       ///< port 0; empty if the interface has no usable one
  std::string reason;
  bool usable = false;
};

/// Best first; unusable ones (down, without an address) come last.
std::vector<RankedInterface> rank_interfaces(std::span<const link::Interface> interfaces);

/// The further rails, best first, out of `addresses`, which are sorted best first. `primary` is the one that
/// carries the endpoint's address. `unknown` receives the names in `rule` that no usable address has.
std::vector<const link::InterfaceAddress*> choose_rails(std::span<const link::InterfaceAddress> addresses,
                                                        const link::InterfaceAddress& primary,
                                                        const std::string& rule,
                                                        std::vector<std::string>& unknown);

}  // namespace cluster::multipath
