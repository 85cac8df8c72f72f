#include "multipath/interface_choice.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "multipath/address_pairing.h"

namespace cluster::multipath {
namespace {

using link::Interface;
using link::InterfaceAddress;

struct KindTraits {
  int rank;  ///< smaller is better
  const char* text;
};

KindTraits traits_of(const Interface& interface) {
  switch (interface.kind) {
    case Interface::Kind::physical: return {0, "network adapter"};
    case Interface::Kind::bond: return {0, "bond"};
    case Interface::Kind::vlan: return {1, "VLAN"};
    case Interface::Kind::macvlan: return {2, "MACVLAN"};
    case Interface::Kind::veth: return {3, "virtual Ethernet pair"};
    case Interface::Kind::virtual_other: return {4, "virtual interface"};
    case Interface::Kind::bridge:
      return interface.hardware_port ? KindTraits{1, "bridge over an adapter"} : KindTraits{5, "bridge"};
    case Interface::Kind::wireless: return {6, "wireless"};
    case Interface::Kind::tunnel: return {7, "tunnel"};
    case Interface::Kind::dummy: return {8, "dummy, leads nowhere"};
    case Interface::Kind::loopback: return {9, "loopback, reaches this node only"};
  }
  return {10, "interface"};
}

std::string describe(const Interface& interface) {
  std::string text = traits_of(interface).text;
  if (!interface.loopback) {
    text += interface.running ? ", carrier" : ", no carrier";
    text += interface.speed_mbit > 0 ? ", " + std::to_string(interface.speed_mbit) + " Mbit/s"
                                     : ", speed unknown";
  }
  return text + ", MTU " + std::to_string(interface.mtu);
}

/// Returns true if the address can be advertised to other nodes. A link-local address would refer to another
/// interface there.
bool routable(const SocketAddress& address, SocketAddress::Family family) {
  return address.family() == family && !address.link_local();
}

/// Returns true if the address is in 169.254/16 (RFC 3927). Only nodes that also have such an address can
/// reach it.
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
                    traits_of(interface).rank, -interface.speed_mbit);
}

bool is_equal(const Interface& one, const Interface& other) {
  return one.kind == other.kind && one.speed_mbit == other.speed_mbit && one.mtu == other.mtu &&
         one.hardware_port == other.hardware_port && one.running == other.running && one.up == other.up;
}

}  // namespace

std::vector<RankedInterface> rank_interfaces(std::span<const Interface> interfaces) {
  std::vector<RankedInterface> ranked;
  for (const Interface& interface : interfaces) {
    const std::size_t before = ranked.size();
    for (const auto family : {SocketAddress::Family::v4, SocketAddress::Family::v6}) {
      const auto address = std::ranges::find_if(
          interface.addresses, [&](const SocketAddress& one) { return routable(one, family); });
      if (!interface.up || address == interface.addresses.end()) continue;
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

std::vector<const InterfaceAddress*> choose_rails(std::span<const InterfaceAddress> addresses,
                                                  const InterfaceAddress& primary, const std::string& rule,
                                                  std::vector<std::string>& unknown) {
  const auto usable = [&](const InterfaceAddress& entry) {
    return routable(entry.address, primary.address.family());
  };
  std::vector<const InterfaceAddress*> chosen;
  const auto add = [&](const InterfaceAddress& entry) {
    const auto same = [&](const InterfaceAddress* other) {
      return other->interface.index == entry.interface.index;
    };
    const bool again = same(&primary) || std::ranges::any_of(chosen, same);
    if (!again && chosen.size() + 1 < kPathsMax) chosen.push_back(&entry);
  };
  std::vector<std::string> excluded;
  bool all_equal = true;
  std::istringstream words(rule);
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    if (word.empty() || word == "auto") continue;
    if (word.front() == '^') {
      excluded.push_back(word.substr(1));
      continue;
    }
    all_equal = false;
    if (word == "none") continue;
    const auto found = std::ranges::find_if(addresses, [&](const InterfaceAddress& entry) {
      return entry.interface.name == word && usable(entry);
    });
    if (found == addresses.end()) {
      unknown.push_back(word);
    } else {
      add(*found);
    }
  }
  for (const InterfaceAddress& entry : addresses) {
    const bool equal = all_equal && !entry.interface.loopback && usable(entry) &&
                       is_equal(entry.interface, primary.interface);
    if (equal && std::ranges::find(excluded, entry.interface.name) == excluded.end()) add(entry);
  }
  return chosen;
}

}  // namespace cluster::multipath
