// Opens the UDP ports and links of an endpoint: one rail on the interface that names it, and further rails as
// FI_CLUSTER_RAILS says. Each failure is logged here in one line.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "os/interfaces.h"
#include "os/udp_port.h"
#include "provider/interface_addresses.h"
#include "provider/options.h"

namespace cluster::provider {

struct LinkChoice {
  std::unique_ptr<link::Link> link;  ///< null only if FI_CLUSTER_LINK=packet is not possible
  std::string reason;                ///< why the link is not the packet link; empty if it is
};

/// Returns the link of an endpoint that is bound to `port`, an address of `interface`. FI_CLUSTER_LINK,
/// interface, kernel and privileges decide which link it is. Endpoints and cluster-info use the same
/// function, so the tool reports what endpoints do. `sessions`: the endpoint has sessions (FI_EP_RDM). The
/// EtherType path needs them, because a peer must answer challenges on it.
LinkChoice choose_link(const std::shared_ptr<os::UdpPort>& port, const os::Interface& interface,
                       const Options& options, const Environment& environment, bool sessions = true);

/// The rails of one endpoint. The first is that of its name. All vectors have the same order.
struct OpenedRails {
  std::vector<std::shared_ptr<os::UdpPort>> ports;
  std::vector<std::unique_ptr<link::Link>> links;
  std::vector<multipath::Rail> rails;
  std::string not_packet_reason;  ///< why the first link is not the packet link; empty if it is

  std::vector<std::string> interface_names() const;
  /// Returns all links as one.
  std::unique_ptr<link::Link> take_link();
};

/// Opens the port of an endpoint on `place`. On failure it logs a warning, sets `error` to a positive errno
/// and returns null.
std::shared_ptr<os::UdpPort> open_port(const InterfaceAddress& place, std::uint16_t port, Log& log,
                                       int& error);

/// Adds a rail with a link on `port`. Returns false, after a warning, if the link cannot be opened.
/// `sessions`: see choose_link().
bool add_rail(const InterfaceAddress& place, std::shared_ptr<os::UdpPort> port, const Options& options,
              const Environment& environment, bool sessions, OpenedRails& rails);
/// Adds the rails besides `named`. It leaves out an interface that cannot be used, with a warning.
void add_further_rails(std::span<const InterfaceAddress> places, const InterfaceAddress& named,
                       const Options& options, const Environment& environment, OpenedRails& rails);

}  // namespace cluster::provider
