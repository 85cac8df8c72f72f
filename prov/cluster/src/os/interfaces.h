// The network interfaces of this network namespace, as plain values, from which rails are chosen. Read by
// netlink rather than from /sys, which may belong to another namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "link/interface.h"

namespace cluster::os {

using link::Interface;

/// In the kernel's order. Not all of them, with an errno in `error`, if netlink fails.
std::vector<Interface> list_interfaces(int* error = nullptr);

/// Takes in what the kernel says of one link or address (RTM_NEWLINK, RTM_DELADDR...). False if nothing is different now.
bool note_change(std::uint16_t type, ConstBytes message, std::vector<Interface>& interfaces);

/// The number of queues into which the interface of this name sorts what it receives; 1 if the driver reports
/// none. Devices that have several spread IP traffic over them by addresses and ports, and put unknown
/// EtherTypes into the first: there such frames overtake others or are overtaken, and one processor takes
/// them all in.
std::size_t receive_queues(const std::string& interface);

/// What makes an address one of this node's though no interface lists it: 127.0.1.1, for example, which many a host has
/// for its own name, or an entry of `ip route add local`.
struct LocalRoute {
  int interface = 0;         ///< index
  unsigned prefix_bits = 0;  ///< of the addresses that the entry covers
};
/// Nothing if the address is not local.
std::optional<LocalRoute> local_route(const SocketAddress& address);

/// The local address (port 0) that the kernel uses towards `peer`; nothing if there is no route.
std::optional<SocketAddress> source_for(const SocketAddress& peer);

}  // namespace cluster::os
