// Opens the rails of an endpoint. A rail is a network interface that the endpoint uses, with a UDP port and a
// link. The first rail is the interface whose address is the endpoint's name. The option FI_CLUSTER_RAILS
// determines the further rails. Beside each of these rails there may be one more, over the RDMA device of the
// interface (os/verbs_link.h). Each failure is logged here in one line.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "os/interfaces.h"
#include "os/ring_table.h"
#include "os/udp_port.h"
#include "os/verbs_link.h"
#include "provider/endpoint_report.h"
#include "provider/interface_addresses.h"
#include "provider/options.h"

namespace cluster::provider {

struct LinkChoice {
  std::unique_ptr<link::Link> link;  ///< null only if FI_CLUSTER_LINK=packet is set and not possible
  std::string reason;                ///< why the link is not the packet link, or empty
  std::shared_ptr<const os::RingTable> rings;  ///< the group of the packet link's rings, or null
};

/// Chooses and opens the link of an endpoint that is bound to `port`, on an address of `interface`. The
/// choice depends on FI_CLUSTER_LINK, the interface, the kernel and the privileges of the process.
/// cluster-info calls this function as well, so it reports the same choice that endpoints make. `sessions`:
/// true if the endpoint has sessions (FI_EP_RDM, FI_EP_MSG). Only an endpoint with sessions can use the
/// EtherType path, because a peer must answer challenges on that path.
LinkChoice choose_link(const std::shared_ptr<os::UdpPort>& port, const os::Interface& interface,
                       const Options& options, const Environment& environment, bool sessions = true);

/// Looks for the RDMA device of an interface. cluster-info calls this function as well. If FI_CLUSTER_LINK
/// excludes the device, or if no device works, returns nullopt and sets `reason` to the cause.
std::optional<os::VerbsPort> choose_verbs(const InterfaceAddress& place, const Options& options,
                                          std::string& reason);

/// Returns the length of the prefix that the GIDs of the subnet share, or 0 if it is unknown.
unsigned gid_prefix_bits(const InterfaceAddress& place);

/// The rails of one endpoint. The first rail has the address that is the endpoint's name. The order is the
/// same in all vectors, and the rails over RDMA devices come last. `ports` and `places` have entries only for
/// the other rails, and `verbs` only for the rails over RDMA devices.
struct OpenedRails {
  std::vector<std::shared_ptr<os::UdpPort>> ports;
  std::vector<InterfaceAddress> places;
  std::vector<VerbsRail> verbs;
  /// The places of the interfaces to which the RDMA devices belong that also read long messages. Empty if the
  /// endpoint has a key, because what a device reads is not sealed.
  std::vector<InterfaceAddress> readers;
  std::vector<std::unique_ptr<link::Link>> links;
  std::vector<multipath::Rail> rails;
  /// Why the first link is not the packet link; empty if it is the packet link.
  std::string not_packet_reason;
  std::shared_ptr<const os::RingTable> rings;  ///< the group of the first link's rings, or null

  std::vector<std::string> interface_names() const;
  /// Returns one link that combines all links.
  std::unique_ptr<link::Link> take_link();
};

/// Opens the UDP port of an endpoint on the address `place`. If `port` is 0, uses the first free port of
/// `range`, or one that the kernel chooses if there is no range. On failure, logs a warning, sets `error` to
/// a positive errno and returns null.
std::shared_ptr<os::UdpPort> open_port(const InterfaceAddress& place, std::uint16_t port,
                                       const PortRange& range, Log& log, int& error);

/// Adds a rail with a link on `port`. If the link cannot be opened, logs a warning and returns false.
/// `sessions`: see choose_link().
bool add_rail(const InterfaceAddress& place, std::shared_ptr<os::UdpPort> port, const Options& options,
              const Environment& environment, bool sessions, OpenedRails& rails);
/// Adds the rails that FI_CLUSTER_RAILS determines. `named`: the address of the first rail. If this side
/// cannot use an interface, it logs a warning and adds no rail for that interface.
void add_further_rails(std::span<const InterfaceAddress> places, const InterfaceAddress& named,
                       const Options& options, const Environment& environment, OpenedRails& rails);
/// Adds the rails over RDMA devices. `keyed`: the endpoint has a key. If no rail could be added although
/// FI_CLUSTER_LINK=verbs is set, logs a warning and returns false.
bool add_verbs_rails(const Options& options, bool keyed, const Environment& environment, OpenedRails& rails);

}  // namespace cluster::provider
