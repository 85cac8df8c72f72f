#include "provider/interface_addresses.h"

#include <ifaddrs.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "multipath/interface_rank.h"
#include "os/interfaces.h"

namespace cluster::provider {
namespace {

unsigned bits_set(ConstBytes mask) {
  unsigned bits = 0;
  for (const std::byte byte : mask)
    bits += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
  return bits;
}

/// sockaddr of getifaddrs; they come without a size.
SocketAddress address_of(const sockaddr* address) {
  if (address == nullptr) return {};
  return SocketAddress::from(address, sizeof(sockaddr_storage));
}

/// Prefix lengths of the node's own addresses.
class Prefixes {
 public:
  Prefixes() {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) == 0) list_.reset(list);
  }
  unsigned of(const SocketAddress& address) const {
    for (const ifaddrs* entry = list_.get(); entry != nullptr; entry = entry->ifa_next) {
      // Masks of interfaces that say "no family" are read as if they were the address's.
      if (!address_of(entry->ifa_addr).same_host(address) || entry->ifa_netmask == nullptr) continue;
      sockaddr_storage mask{};
      const std::size_t size = address.family() == SocketAddress::Family::v4 ? 16 : 28;
      std::memcpy(&mask, entry->ifa_netmask, size);
      mask.ss_family = entry->ifa_addr->sa_family;
      return bits_set(SocketAddress::from(reinterpret_cast<const sockaddr*>(&mask), size).ip());
    }
    return static_cast<unsigned>(address.ip().size()) * 8;
  }

 private:
  struct Free {
    void operator()(ifaddrs* list) const { freeifaddrs(list); }
  };
  std::unique_ptr<ifaddrs, Free> list_;
};

bool same_name(const std::string& a, const std::string& b) { return strcasecmp(a.c_str(), b.c_str()) == 0; }

bool names_a_host(const SocketAddress& address) { return !address.empty() && !address.wildcard(); }

bool matches(const InterfaceAddress& place, const AddressFilter& wish) {
  if (names_a_host(wish.source)) {
    if (!place.address.same_host(wish.source)) return false;
  } else if (!wish.interface.empty() && place.interface.name != wish.interface) {
    return false;
  }
  if (wish.family != SocketAddress::Family::none && place.address.family() != wish.family) return false;
  if (!wish.domain.empty() && !same_name(place.interface.name, wish.domain)) return false;
  return wish.fabric.empty() || same_name(place.network, wish.fabric);
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

std::vector<InterfaceAddress> list_interface_addresses() {
  const std::vector<os::Interface> interfaces = os::list_interfaces();
  const Prefixes prefixes;
  std::vector<InterfaceAddress> places;
  const auto add = [&](const os::Interface& interface, const SocketAddress& address,
                       const std::string& reason) {
    const unsigned bits = prefixes.of(address);
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
  return places;
}

const InterfaceAddress* choose(std::span<const InterfaceAddress> places, const AddressFilter& wish) {
  const InterfaceAddress* first = nullptr;
  for (const InterfaceAddress& place : places) {
    if (!matches(place, wish)) continue;
    if (first == nullptr) first = &place;
    if (names_a_host(wish.routed) && place.address.same_host(wish.routed)) return &place;
  }
  return first;
}

std::string no_address_reason(const AddressFilter& wish, std::span<const InterfaceAddress> places) {
  if (places.empty()) return "no network interface is up and has an address (ip addr shows them)";
  if (names_a_host(wish.source)) return "no interface of this node has the address " + wish.source.ip_text();
  if (!wish.interface.empty()) {
    return "FI_CLUSTER_IFACE=" + wish.interface + " names no interface that is up and has a fitting address";
  }
  return "no interface is the one that is asked for";
}

}  // namespace cluster::provider
