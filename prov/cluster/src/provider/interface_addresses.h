// Where this node can be reached: its usable interfaces and addresses, best first, and which of them
// an application means. libfabric's words for it: the fabric is the network, the domain is the
// interface. choose() is pure; list_interface_addresses() asks the machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "link/interface.h"

namespace cluster::provider {

using link::InterfaceAddress;

/// Every address of every interface that is up; the one that names an interface best comes in rank
/// order, what else the interfaces have comes behind. Empty if nothing is usable.
std::vector<InterfaceAddress> list_interface_addresses();

/// "10.88.0.0/24" for an address and the length of its prefix.
std::string network_name(const SocketAddress& address, unsigned prefix_bits);

/// What is known of the place that is wanted; empty fields match anything.
struct AddressFilter {
  std::string interface;  ///< the option FI_CLUSTER_IFACE
  std::string domain;     ///< hints->domain_attr->name
  std::string fabric;     ///< hints->fabric_attr->name
  SocketAddress::Family family = SocketAddress::Family::none;
  SocketAddress source;  ///< the very address, unless empty or a wildcard; beats FI_CLUSTER_IFACE
  SocketAddress routed;  ///< what the kernel would use towards the peer: preferred where allowed
};

/// The best place that matches the wish; null if there is none.
const InterfaceAddress* choose(std::span<const InterfaceAddress> places, const AddressFilter& wish);
/// Why it found none, with the cure if it is ours to tell.
std::string no_address_reason(const AddressFilter& wish, std::span<const InterfaceAddress> places);

}  // namespace cluster::provider
