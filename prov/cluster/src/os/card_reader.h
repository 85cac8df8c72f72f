// Reads what is known about the network card behind an interface: from the driver (ethtool), and from the
// card's folder below /sys/bus/pci. The folder /sys/class/net is of no use, because it may show another
// network namespace. Cards on the bus belong to no namespace, so every process sees them.
#pragma once

#include <string>

#include "link/network_card.h"

namespace cluster::os {

/// `bus`: the folder that contains one folder for each card.
link::NetworkCard read_network_card(const std::string& interface,
                                    const std::string& bus = "/sys/bus/pci/devices");

/// Reads the identifiers of the card from its folder.
void read_card_ids(const std::string& folder, link::NetworkCard& card);

}  // namespace cluster::os
