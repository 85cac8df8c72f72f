// Which link carries an endpoint's frames: the option FI_CLUSTER_LINK against what interface, kernel and
// privileges permit. Endpoints are built by it, and whoever asks what this node can do tries the same.
#pragma once

#include <memory>
#include <string>

#include "base/environment.h"
#include "link/link.h"
#include "os/interfaces.h"
#include "os/udp_port.h"
#include "provider/options.h"

namespace cluster::provider {

struct LinkChoice {
  std::unique_ptr<link::Link> link;  ///< null only if one was asked for by name and cannot be had
  std::string reason;                ///< why not the packet link; empty if it is that
};

/// For an endpoint bound to `port`, an address of `interface`. `sessions`: it has some; only such can be
/// shown that a shortcut leads to a peer.
LinkChoice choose_link(const std::shared_ptr<os::UdpPort>& port, const os::Interface& interface,
                       const Options& options, const Environment& environment, bool sessions = true);

}  // namespace cluster::provider
