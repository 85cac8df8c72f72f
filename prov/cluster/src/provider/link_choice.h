// The link of an endpoint: the option FI_CLUSTER_LINK and what interface, kernel and privileges permit.
// Endpoints and cluster-info use the same function, so that the tool reports what endpoints do.
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
  std::unique_ptr<link::Link> link;  ///< null only if FI_CLUSTER_LINK=packet is not possible
  std::string reason;                ///< why it is not the packet link; empty if it is
};

/// For an endpoint bound to `port`, an address of `interface`. `sessions`: it has some (FI_EP_RDM); the
/// EtherType path needs one, because challenges on it must be answered.
LinkChoice choose_link(const std::shared_ptr<os::UdpPort>& port, const os::Interface& interface,
                       const Options& options, const Environment& environment, bool sessions = true);

}  // namespace cluster::provider
