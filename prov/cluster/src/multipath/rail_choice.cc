#include "multipath/rail_choice.h"

#include <algorithm>
#include <sstream>

#include "multipath/address_pairing.h"

namespace cluster::multipath {
namespace {

using link::Interface;
using link::InterfaceAddress;

bool is_equal(const Interface& one, const Interface& other) {
  return one.kind == other.kind && one.speed_mbit == other.speed_mbit && one.mtu == other.mtu &&
         one.hardware_port == other.hardware_port && one.running == other.running && one.up == other.up;
}

struct Rule {
  std::vector<std::string> included;
  std::vector<std::string> excluded;
  bool all_equal = true;
};

Rule parse(const std::string& text) {
  Rule rule;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    if (word.empty() || word == "auto") continue;
    if (word == "none") {
      rule.all_equal = false;
    } else if (word.front() == '^') {
      rule.excluded.push_back(word.substr(1));
    } else {
      rule.included.push_back(word);
    }
  }
  rule.all_equal = rule.all_equal && rule.included.empty();
  return rule;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A link-local address names another interface at the peer, so it cannot be advertised.
bool can_be_advertised(const InterfaceAddress& entry, SocketAddress::Family family) {
  return entry.address.family() == family && !entry.address.link_local();
}

/// The best address of an interface in this family; null if there is none.
const InterfaceAddress* find_address(std::span<const InterfaceAddress> addresses,
                                     const std::string& interface, SocketAddress::Family family) {
  const auto found = std::find_if(addresses.begin(), addresses.end(), [&](const InterfaceAddress& entry) {
    return entry.interface.name == interface && can_be_advertised(entry, family);
  });
  return found == addresses.end() ? nullptr : &*found;
}

}  // namespace

std::vector<const InterfaceAddress*> choose_rails(std::span<const InterfaceAddress> addresses,
                                                  const InterfaceAddress& primary, const std::string& text,
                                                  std::vector<std::string>& unknown) {
  const Rule rule = parse(text);
  const SocketAddress::Family family = primary.address.family();
  std::vector<const InterfaceAddress*> chosen;
  const auto add = [&](const InterfaceAddress* entry) {
    const bool again = entry->interface.index == primary.interface.index ||
                       std::any_of(chosen.begin(), chosen.end(), [&](const InterfaceAddress* other) {
                         return other->interface.index == entry->interface.index;
                       });
    if (!again && chosen.size() + 1 < kPathsMax) chosen.push_back(entry);
  };
  for (const std::string& name : rule.included) {
    const InterfaceAddress* entry = find_address(addresses, name, family);
    if (entry == nullptr) unknown.push_back(name);
    if (entry != nullptr) add(entry);
  }
  for (const InterfaceAddress& entry : addresses) {
    const bool equal = rule.all_equal && !entry.interface.loopback && can_be_advertised(entry, family) &&
                       is_equal(entry.interface, primary.interface);
    if (equal && !contains(rule.excluded, entry.interface.name)) add(&entry);
  }
  return chosen;
}

}  // namespace cluster::multipath
