// The network interfaces of this network namespace, as plain values: what rails/ ranks and links
// bind to. Read by netlink rather than from /sys, which may belong to another namespace.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"

namespace cluster::os {

struct Interface {
  enum class Kind {
    physical,
    veth,
    bridge,
    bond,
    vlan,
    macvlan,
    tunnel,
    wireless,
    virtual_other,
    dummy,
    loopback,
  };

  std::string name;
  int index = 0;
  unsigned mtu = 0;
  std::array<std::byte, 6> mac{};
  bool up = false;
  bool running = false;  ///< has a carrier
  bool loopback = false;
  bool point_to_point = false;
  bool has_ethernet = false;
  bool shaped = false;         ///< a queueing discipline limits what leaves it
  int master = 0;              ///< index of the bridge or bond it is a port of; 0: of none
  bool hardware_port = false;  ///< a bridge with a port that leads out of this node
  long speed_mbit = -1;        ///< -1: unknown
  Kind kind = Kind::physical;
  std::vector<SocketAddress> addresses;  ///< port 0; usable unicast, v4 first, link-local v6 last
};

/// In the kernel's order. Empty if the kernel tells nothing.
std::vector<Interface> list_interfaces();

/// The local address (port 0) that the kernel uses towards `peer`; nothing if there is no route.
std::optional<SocketAddress> source_for(const SocketAddress& peer);

}  // namespace cluster::os
