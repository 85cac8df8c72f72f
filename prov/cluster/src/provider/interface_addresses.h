// The interface addresses of this node that endpoints can use, best first, and the choice among them. In
// libfabric's terms the fabric is the network and the domain is the interface. list_interface_addresses()
// asks the kernel; choose_address() depends only on its arguments.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "link/interface.h"

namespace cluster::provider {

using link::InterfaceAddress;

/// Returns every address of every interface that is up: first the best address of each interface in rank
/// order, then the other addresses. Adds `wanted` at the end if it is local only by a route. Returns an empty
/// list if no interface is usable. If the kernel did not list the interfaces, `error` gets an errno.
std::vector<InterfaceAddress> list_interface_addresses(const SocketAddress& wanted, int& error);

/// Returns "10.88.0.0/24" for an address and the length of its prefix.
std::string network_name(const SocketAddress& address, unsigned prefix_bits);

/// The wishes of the caller; empty fields match everything.
struct AddressFilter {
  std::string interface;      ///< the option FI_CLUSTER_IFACE
  std::string domain;         ///< hints->domain_attr->name
  std::string fabric;         ///< hints->fabric_attr->name
  std::string opened_domain;  ///< name of hints->domain_attr->domain
  std::string opened_fabric;  ///< name of hints->fabric_attr->fabric
  SocketAddress::Family family = SocketAddress::Family::none;
  SocketAddress source;  ///< only this address, unless empty or a wildcard; overrides FI_CLUSTER_IFACE
  SocketAddress routed;  ///< preferred: the address that the kernel would use towards the peer
};

const InterfaceAddress* choose_address(std::span<const InterfaceAddress> places, const AddressFilter& filter);
/// Returns why there is no match, and the remedy. `error` comes from list_interface_addresses().
std::string no_address_reason(const AddressFilter& filter, std::span<const InterfaceAddress> places,
                              int error);

}  // namespace cluster::provider
