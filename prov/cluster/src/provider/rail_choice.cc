#include "provider/rail_choice.h"

#include <algorithm>
#include <sstream>

#include "multipath/address_pairing.h"

namespace cluster::provider {
namespace {

bool equals(const os::Interface& one, const os::Interface& other) {
  return one.kind == other.kind && one.speed_mbit == other.speed_mbit && one.mtu == other.mtu &&
         one.hardware_port == other.hardware_port && one.running == other.running && one.up == other.up;
}

struct Rule {
  std::vector<std::string> wanted;
  std::vector<std::string> unwanted;
  bool all_equals = true;
};

Rule read(const std::string& text) {
  Rule rule;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::erase(word, ' ');
    if (word.empty() || word == "auto") continue;
    if (word == "none") {
      rule.all_equals = false;
    } else if (word.front() == '^') {
      rule.unwanted.push_back(word.substr(1));
    } else {
      rule.wanted.push_back(word);
    }
  }
  rule.all_equals = rule.all_equals && rule.wanted.empty();
  return rule;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Peers cannot be told of an address that means another interface to them.
bool can_be_told(const InterfaceAddress& place, SocketAddress::Family family) {
  return place.address.family() == family && !place.address.link_local();
}

/// The place by which an interface is known in this family; places come best first.
const InterfaceAddress* place_of(std::span<const InterfaceAddress> places, const std::string& interface,
                                 SocketAddress::Family family) {
  const auto found = std::find_if(places.begin(), places.end(), [&](const InterfaceAddress& place) {
    return place.interface.name == interface && can_be_told(place, family);
  });
  return found == places.end() ? nullptr : &*found;
}

}  // namespace

std::vector<const InterfaceAddress*> choose_rails(std::span<const InterfaceAddress> places,
                                                  const InterfaceAddress& named, const std::string& text,
                                                  std::vector<std::string>& unknown) {
  const Rule rule = read(text);
  std::vector<const InterfaceAddress*> chosen;
  const auto add = [&](const InterfaceAddress* place) {
    const bool again = place->interface.index == named.interface.index ||
                       std::any_of(chosen.begin(), chosen.end(), [&](const InterfaceAddress* other) {
                         return other->interface.index == place->interface.index;
                       });
    if (!again && chosen.size() + 1 < multipath::kPathsMax) chosen.push_back(place);
  };
  for (const std::string& name : rule.wanted) {
    const InterfaceAddress* place = place_of(places, name, named.address.family());
    if (place == nullptr) unknown.push_back(name);
    if (place != nullptr) add(place);
  }
  for (const InterfaceAddress& place : places) {
    const bool alike = rule.all_equals && !place.interface.loopback &&
                       can_be_told(place, named.address.family()) && equals(place.interface, named.interface);
    if (alike && !contains(rule.unwanted, place.interface.name)) add(&place);
  }
  return chosen;
}

}  // namespace cluster::provider
