// Which interface is the best default for an endpoint: a pure ranking of what os/ found. One entry per
// interface and address family, each with its reason as text, so that fi_info and the log can say why. Order:
// interfaces that reach other nodes before loopback, with carrier before without, a configured address before
// a self-assigned one (169.254/16), adapters (and a bridge with an adapter as port) before what containers
// and tunnels create, then speed, then the kernel's order; IPv4 before IPv6.
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

}  // namespace cluster::multipath
