// The network interfaces of this network namespace, as plain values, from which rails are chosen. Read by
// netlink rather than from /sys, which may belong to another namespace.
#pragma once

#include <optional>
#include <vector>

#include "base/address.h"
#include "link/interface.h"

namespace cluster::os {

using link::Interface;

/// In the kernel's order. Empty if netlink fails.
std::vector<Interface> list_interfaces();

/// The local address (port 0) that the kernel uses towards `peer`; nothing if there is no route.
std::optional<SocketAddress> source_for(const SocketAddress& peer);

}  // namespace cluster::os
