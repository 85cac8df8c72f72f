// Network interfaces of this node and their addresses, as plain values. os/interfaces.h reads them from the
// kernel. multipath/ ranks them and chooses among them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/address.h"

namespace cluster::link {

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
  bool running = false;  ///< has a link partner (IFF_RUNNING and IFF_LOWER_UP)
  bool loopback = false;
  bool has_ethernet = false;
  bool shaped = false;         ///< a queueing discipline limits its transmission rate
  int master = 0;              ///< index of the bridge or bond that has this interface as a port; 0: none
  bool hardware_port = false;  ///< true for a bridge or bond with a port that leads out of this node
  long speed_mbit = -1;        ///< -1: unknown
  Kind kind = Kind::physical;
  /// Usable unicast addresses with port 0. IPv4 addresses are first, and link-local IPv6 addresses are last.
  std::vector<SocketAddress> addresses;
  std::vector<unsigned> prefix_bits;  ///< prefix length of each of `addresses`

  friend bool operator==(const Interface&, const Interface&) = default;
};

/// An address under which this node can be reached, and the interface that has it.
struct InterfaceAddress {
  Interface interface;
  SocketAddress address;  ///< port 0
  std::string network;    ///< "10.88.0.0/24"
  std::string reason;     ///< text that explains the rank of the address
  unsigned prefix_bits = 0;
};

}  // namespace cluster::link
