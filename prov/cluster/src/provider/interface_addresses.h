// Lists the interface addresses of this node that endpoints can use, best first, and chooses one of them. In
// libfabric's terms, the network is the fabric and the interface is the domain. list_interface_addresses()
// asks the kernel; choose_address() depends only on its arguments.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "link/interface.h"

namespace cluster::provider {

using link::InterfaceAddress;

/// Returns all addresses of all interfaces that are up. The best IPv4 address and the best IPv6 address of
/// each interface come first, those of the best interface at the front. Then the other addresses follow. If
/// `wanted` belongs to no interface but is local by a route, adds it at the end. Returns an empty list if no
/// interface is up and has an address. If the kernel cannot list the interfaces, sets `error` to an errno.
std::vector<InterfaceAddress> list_interface_addresses(const SocketAddress& wanted, int& error);

/// Returns the name of the address's network, for example "10.88.0.0/24".
std::string network_name(const SocketAddress& address, unsigned prefix_bits);

/// The conditions that an interface address must fulfil. An empty field is no condition.
struct AddressFilter {
  std::string interface;      ///< the option FI_CLUSTER_IFACE
  std::string domain;         ///< hints->domain_attr->name
  std::string fabric;         ///< hints->fabric_attr->name
  std::string opened_domain;  ///< the name of the object hints->domain_attr->domain
  std::string opened_fabric;  ///< the name of the object hints->fabric_attr->fabric
  SocketAddress::Family family = SocketAddress::Family::none;
  /// The required address, unless it is empty or a wildcard; overrides FI_CLUSTER_IFACE.
  SocketAddress source;
  /// The preferred address: the source address that the kernel would use to reach the destination.
  SocketAddress routed;
};

const InterfaceAddress* choose_address(std::span<const InterfaceAddress> places, const AddressFilter& filter);
/// Returns, for the log, why no address matches, and the remedy. `error` comes from
/// list_interface_addresses().
std::string no_address_reason(const AddressFilter& filter, std::span<const InterfaceAddress> places,
                              int error);

}  // namespace cluster::provider
