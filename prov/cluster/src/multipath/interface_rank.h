// Which interface names this node best: a pure ranking of what os/ found. One entry per interface
// and address family, each with its reason in words, so that fi_info and the log can say why.
// Order: something to reach others with before loopback, a carrier before none, an address that somebody gave
// before one it gave itself, real hardware (and a bridge that has it for a port) before what containers and
// tunnels build, speed, the kernel's order; v4 before v6.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "os/interfaces.h"

namespace cluster::multipath {

struct RankedInterface {
  const os::Interface* interface = nullptr;  ///< borrowed from the list that was ranked
  SocketAddress address;                     ///< port 0; empty if the interface has none to offer
  std::string reason;
  bool usable = false;
};

/// Best first; unusable ones (down, without an address) come last.
std::vector<RankedInterface> rank_interfaces(std::span<const os::Interface> interfaces);

}  // namespace cluster::multipath
