// The interfaces of this network namespace as plain values, from which provider/ chooses rails. Netlink reports them: /sys may belong to
// another namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "link/interface.h"

namespace cluster::os {

using link::Interface;

/// In the kernel's order. If netlink fails, some are missing, and `error` is an errno.
std::vector<Interface> list_interfaces(int* error = nullptr);

/// Applies what the kernel says of one link or address (RTM_NEWLINK, RTM_DELADDR...). False if that changes nothing.
bool note_change(std::uint16_t type, ConstBytes message, std::vector<Interface>& interfaces);

/// The number of queues into which the interface of this name sorts what it receives; 1 if the driver reports none. A device with
/// several queues spreads IP traffic over them by addresses and ports, and puts unknown EtherTypes into the first one. There such frames
/// overtake others or are overtaken, and one processor receives them all.
std::size_t receive_queues(const std::string& interface);

/// A route that makes an address local though no interface lists it: 127.0.1.1, for example, which many hosts use for their own name, or
/// an entry of `ip route add local`.
struct LocalRoute {
  int interface = 0;         ///< index
  unsigned prefix_bits = 0;  ///< of the addresses that the entry covers
};
/// Nothing if the address is not local.
std::optional<LocalRoute> local_route(const SocketAddress& address);

/// The local address (port 0) that the kernel uses towards `peer`; nothing if there is no route.
std::optional<SocketAddress> source_for(const SocketAddress& peer);

}  // namespace cluster::os
