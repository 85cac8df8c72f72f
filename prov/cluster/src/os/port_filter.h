// Classic BPF programs, with which the kernel decides before a byte is copied.
//   frames of one port   which frames of an interface belong to an endpoint (packet link)
//   not this interface   what the endpoint's ordinary socket leaves to the ring (packet link)
//   steering             which of the sockets on one port a datagram is for; during a flood, what waits aside (link/link.h)
//   steering by host     which of two listeners on one TCP port a connection is for
// Jumps in classic BPF go forward only, so every refusal is one shared last instruction.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "link/link.h"

namespace cluster::os {

using FilterProgram = std::vector<sock_filter>;

/// For a packet socket: whole Ethernet frames to this host that carry an unfragmented UDP datagram
/// without IP options or extension headers to exactly `ours`, under this EtherType, and do not wait aside.
FilterProgram frames_for(const SocketAddress& ours, std::uint16_t ether_type,
                         const link::Thinning& thinning = {});

/// For a UDP socket: everything except what came in through the interface.
FilterProgram all_but_interface(int index);

/// The sockets of a reuseport group, by the order in which they were bound.
struct PortSockets {
  static constexpr std::uint32_t kMain = 0;
  std::uint32_t keep_alives = kMain;
  std::uint32_t aside = kMain;
};

/// For a reuseport group. During a flood what has no mark, or is too short for one, goes aside, and a part of the keep-alives
/// (Thinning::kKeepAliveShift). Other keep-alives go to their socket if there is one. All else goes to the main socket, also a
/// keep-alive that is joined with other datagrams.
FilterProgram steering(const PortSockets& sockets, const link::Thinning& thinning = {});

/// For a reuseport group of two listeners: connections from these hosts (their IP addresses, all of one family) go to the first, all
/// others to the second. `secret`: of IPv6 addresses 32 bits are compared, which depend on it.
FilterProgram steering_by_host(std::span<const SocketAddress> hosts, SocketAddress::Family family,
                               std::uint64_t secret);

/// `option` is SO_ATTACH_FILTER or SO_ATTACH_REUSEPORT_CBPF. Returns 0 or an errno.
int attach_filter(int socket, int option, FilterProgram& program);

}  // namespace cluster::os
