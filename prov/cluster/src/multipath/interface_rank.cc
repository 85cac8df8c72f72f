#include "multipath/interface_rank.h"

#include <algorithm>
#include <tuple>

namespace cluster::multipath {
namespace {

using link::Interface;

/// Smaller is better.
int kind_rank(const Interface& interface) {
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

const char* kind_text(const Interface& interface) {
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
  std::string text = kind_text(interface);
  if (!interface.loopback) {
    text += interface.running ? ", carrier" : ", no carrier";
    text += interface.speed_mbit > 0 ? ", " + std::to_string(interface.speed_mbit) + " Mbit/s"
                                     : ", speed unknown";
  }
  return text + ", MTU " + std::to_string(interface.mtu);
}

/// The first address of the family that is valid on other nodes, so no link-local one.
const SocketAddress* first_routable(const Interface& interface, SocketAddress::Family family) {
  for (const SocketAddress& address : interface.addresses) {
    if (address.family() == family && !address.link_local()) return &address;
  }
  return nullptr;
}

/// 169.254/16 (RFC 3927): reachable only from nodes that are self-assigned, too.
bool self_assigned(const SocketAddress& address) {
  return address.family() == SocketAddress::Family::v4 && address.ip()[0] == std::byte{169} &&
         address.ip()[1] == std::byte{254};
}

std::string obstacle(const Interface& interface) {
  if (!interface.up) return "is down";
  if (interface.addresses.empty()) return "has no address";
  return "has only a link-local address";
}

auto sort_key(const RankedInterface& entry) {
  const Interface& interface = *entry.interface;
  return std::tuple(!entry.usable, interface.loopback, !interface.running, self_assigned(entry.address),
                    kind_rank(interface), -interface.speed_mbit);
}

}  // namespace

std::vector<RankedInterface> rank_interfaces(std::span<const Interface> interfaces) {
  std::vector<RankedInterface> ranked;
  for (const Interface& interface : interfaces) {
    const std::size_t before = ranked.size();
    for (const auto family : {SocketAddress::Family::v4, SocketAddress::Family::v6}) {
      const SocketAddress* address = interface.up ? first_routable(interface, family) : nullptr;
      if (address == nullptr) continue;
      const char* origin = self_assigned(*address) ? ", a self-assigned address" : "";
      ranked.push_back({&interface, *address, describe(interface) + origin, true});
    }
    if (ranked.size() == before) {
      ranked.push_back({&interface, {}, obstacle(interface) + " (" + describe(interface) + ")", false});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedInterface& a, const RankedInterface& b) {
    return sort_key(a) < sort_key(b);
  });
  return ranked;
}

}  // namespace cluster::multipath
