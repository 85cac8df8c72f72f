#include "provider/interface_addresses.h"

#include <strings.h>

#include <algorithm>
#include <array>

#include "multipath/interface_choice.h"
#include "os/descriptor.h"
#include "os/interfaces.h"

namespace cluster::provider {
namespace {

bool same_name(const std::string& a, const std::string& b) { return strcasecmp(a.c_str(), b.c_str()) == 0; }

bool is_host(const SocketAddress& address) { return !address.empty() && !address.wildcard(); }

bool matches(const InterfaceAddress& place, const AddressFilter& filter) {
  if (is_host(filter.source)) {
    if (!place.address.same_host(filter.source)) return false;
  } else if (!filter.interface.empty() && place.interface.name != filter.interface) {
    return false;
  }
  if (filter.family != SocketAddress::Family::none && place.address.family() != filter.family) return false;
  const auto may_be = [](const std::string& name, const std::string& wanted) {
    return wanted.empty() || same_name(name, wanted);
  };
  return may_be(place.interface.name, filter.domain) && may_be(place.interface.name, filter.opened_domain) &&
         may_be(place.network, filter.fabric) && may_be(place.network, filter.opened_fabric);
}

bool has_host(std::span<const InterfaceAddress> places, const SocketAddress& host) {
  return std::any_of(places.begin(), places.end(),
                     [&](const InterfaceAddress& place) { return place.address.same_host(host); });
}

void add_routed(const SocketAddress& address, std::span<const os::Interface> interfaces,
                std::vector<InterfaceAddress>& places) {
  const std::optional<os::LocalRoute> route = os::local_route(address);
  if (!route) return;
  for (const os::Interface& interface : interfaces) {
    if (interface.index != route->interface || !interface.up) continue;
    places.push_back({interface, address.with_port(0), network_name(address, route->prefix_bits),
                      "local by a route", route->prefix_bits});
  }
}

}  // namespace

std::string network_name(const SocketAddress& address, unsigned prefix_bits) {
  std::array<std::byte, 16> ip{};
  const ConstBytes own = address.ip();
  std::copy(own.begin(), own.end(), ip.begin());
  for (unsigned i = 0; i < own.size(); ++i) {
    const unsigned kept = std::min(8u, prefix_bits > 8 * i ? prefix_bits - 8 * i : 0u);
    ip[i] &= static_cast<std::byte>(0xff00u >> kept);
  }
  const SocketAddress network = address.family() == SocketAddress::Family::v4
                                    ? SocketAddress::v4(ip.data(), 0)
                                    : SocketAddress::v6(ip.data(), 0);
  return network.ip_text() + "/" + std::to_string(prefix_bits);
}

std::vector<InterfaceAddress> list_interface_addresses(const SocketAddress& wanted, int& error) {
  const std::vector<os::Interface> interfaces = os::list_interfaces(&error);
  std::vector<InterfaceAddress> places;
  const auto add = [&](const os::Interface& interface, const SocketAddress& address,
                       const std::string& reason) {
    const auto& all = interface.addresses;
    const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), address) - all.begin());
    const unsigned bits = interface.prefix_bits.at(at);
    places.push_back({interface, address, network_name(address, bits), reason, bits});
  };
  for (const multipath::RankedInterface& ranked : multipath::rank_interfaces(interfaces)) {
    if (ranked.usable) add(*ranked.interface, ranked.address, ranked.reason);
  }
  for (const os::Interface& interface : interfaces) {
    if (!interface.up) continue;
    for (const SocketAddress& address : interface.addresses) {
      const bool ranked = std::any_of(places.begin(), places.end(), [&](const InterfaceAddress& place) {
        return place.interface.index == interface.index && place.address == address;
      });
      if (!ranked) add(interface, address, "a further address of the interface");
    }
  }
  if (is_host(wanted) && !has_host(places, wanted)) add_routed(wanted, interfaces, places);
  return places;
}

const InterfaceAddress* choose_address(std::span<const InterfaceAddress> places,
                                       const AddressFilter& filter) {
  const InterfaceAddress* first = nullptr;
  for (const InterfaceAddress& place : places) {
    if (!matches(place, filter)) continue;
    if (first == nullptr) first = &place;
    if (is_host(filter.routed) && place.address.same_host(filter.routed)) return &place;
  }
  return first;
}

std::string no_address_reason(const AddressFilter& filter, std::span<const InterfaceAddress> places,
                              int error) {
  if (error != 0) return "the kernel does not list the network interfaces: " + os::error_text(error);
  if (places.empty()) return "no network interface is up and has an address (see \"ip address\")";
  if (is_host(filter.source)) return "no interface of this node has the address " + filter.source.ip_text();
  if (!filter.interface.empty()) {
    return "FI_CLUSTER_IFACE=" + filter.interface +
           " is not an interface that is up and has an address of the requested family (see \"ip "
           "address\")";
  }
  return "no interface matches the domain, fabric or address family in the hints";
}

}  // namespace cluster::provider
