#include "multipath/interface_rank.h"

#include <algorithm>
#include <tuple>

namespace cluster::multipath {
namespace {

using os::Interface;

/// Smaller is better.
int class_of(const Interface& interface) {
  switch (interface.kind) {
    case Interface::Kind::physical:
    case Interface::Kind::bond: return 0;
    case Interface::Kind::vlan: return 1;
    case Interface::Kind::macvlan: return 2;
    case Interface::Kind::veth: return 3;
    case Interface::Kind::virtual_other: return 4;
    case Interface::Kind::bridge: return interface.hardware_port ? 1 : 5;
    case Interface::Kind::wireless: return 6;
    case Interface::Kind::tunnel: return 7;
    case Interface::Kind::dummy: return 8;
    case Interface::Kind::loopback: return 9;
  }
  return 10;
}

const char* words_for(const Interface& interface) {
  switch (interface.kind) {
    case Interface::Kind::physical: return "network adapter";
    case Interface::Kind::veth: return "virtual Ethernet pair";
    case Interface::Kind::bridge: return interface.hardware_port ? "bridge over an adapter" : "bridge";
    case Interface::Kind::bond: return "bond";
    case Interface::Kind::vlan: return "VLAN";
    case Interface::Kind::macvlan: return "MACVLAN";
    case Interface::Kind::tunnel: return "tunnel";
    case Interface::Kind::wireless: return "wireless";
    case Interface::Kind::virtual_other: return "virtual interface";
    case Interface::Kind::dummy: return "dummy, leads nowhere";
    case Interface::Kind::loopback: return "loopback, reaches this node only";
  }
  return "interface";
}

std::string describe(const Interface& interface) {
  std::string words = words_for(interface);
  if (!interface.loopback) {
    words += interface.running ? ", carrier" : ", no carrier";
    words += interface.speed_mbit > 0 ? ", " + std::to_string(interface.speed_mbit) + " Mbit/s"
                                      : ", speed unknown";
  }
  return words + ", MTU " + std::to_string(interface.mtu);
}

/// The first address of the family that others can name; link-local ones mean something else on
/// every node.
const SocketAddress* first_of(const Interface& interface, SocketAddress::Family family) {
  for (const SocketAddress& address : interface.addresses) {
    if (address.family() == family && !address.link_local()) return &address;
  }
  return nullptr;
}

/// What nodes give themselves that found nobody to give them one. It works as long as all do.
bool self_given(const SocketAddress& address) {
  return address.family() == SocketAddress::Family::v4 && address.ip()[0] == std::byte{169} &&
         address.ip()[1] == std::byte{254};
}

std::string obstacle(const Interface& interface) {
  if (!interface.up) return "is down";
  if (interface.addresses.empty()) return "has no address";
  return "has only a link-local address";
}

auto order_of(const RankedInterface& entry) {
  const Interface& interface = *entry.interface;
  return std::tuple(!entry.usable, interface.loopback, !interface.running, self_given(entry.address),
                    class_of(interface), -interface.speed_mbit);
}

}  // namespace

std::vector<RankedInterface> rank_interfaces(std::span<const Interface> interfaces) {
  std::vector<RankedInterface> ranked;
  for (const Interface& interface : interfaces) {
    const std::size_t before = ranked.size();
    for (const auto family : {SocketAddress::Family::v4, SocketAddress::Family::v6}) {
      const SocketAddress* address = interface.up ? first_of(interface, family) : nullptr;
      if (address == nullptr) continue;
      const char* given = self_given(*address) ? ", an address it gave itself" : "";
      ranked.push_back({&interface, *address, describe(interface) + given, true});
    }
    if (ranked.size() == before) {
      ranked.push_back({&interface, {}, obstacle(interface) + " (" + describe(interface) + ")", false});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedInterface& a, const RankedInterface& b) {
    return order_of(a) < order_of(b);
  });
  return ranked;
}

}  // namespace cluster::multipath
