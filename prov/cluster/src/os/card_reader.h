// Reads what is known about the network card behind an interface: from the driver (ethtool), and from the
// card's folder below /sys/bus/pci. The folder /sys/class/net is of no use, because it may belong to another
// network namespace. Cards on the bus belong to no namespace.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "link/network_card.h"

namespace cluster::os {

/// Returns the place that a text such as "0000:3b:00.1" names, or nothing if it is no such text.
std::optional<link::PciPlace> parse_pci_place(std::string_view text);

/// `bus`: the folder with one folder for each card.
link::NetworkCard read_network_card(const std::string& interface,
                                    const std::string& bus = "/sys/bus/pci/devices");

/// Reads the identifiers of the card from its folder.
void read_card_ids(const std::string& folder, link::NetworkCard& card);

}  // namespace cluster::os
