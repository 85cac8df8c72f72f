// Classic BPF programs, which the kernel runs on a packet before it copies a byte.
//   frames of one port   which frames of an interface belong to an endpoint (packet link)
//   not this interface   what the endpoint's ordinary socket leaves to the ring (packet link)
//   steering             which socket of a UDP port gets a datagram; in a flood, which ones wait aside
//   steering by host     which of the two listeners on one TCP port gets a connection
// Jumps in classic BPF go forward only, so all refusals share one last instruction.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "link/link.h"

namespace cluster::os {

using FilterProgram = std::vector<sock_filter>;

/// For a packet socket. Accepts whole Ethernet frames of this EtherType to this host that carry an
/// unfragmented UDP datagram to exactly `ours`. Refuses IP options, extension headers, and frames that must
/// wait aside.
FilterProgram frames_for(const SocketAddress& ours, std::uint16_t ether_type,
                         const link::Thinning& thinning = {});

/// For a UDP socket. Accepts everything except what came in through the interface.
FilterProgram all_but_interface(int index);

/// The sockets of a reuseport group, numbered in the order in which they were bound.
struct PortSockets {
  static constexpr std::uint32_t kMain = 0;
  std::uint32_t keep_alives = kMain;
  std::uint32_t aside = kMain;
};

/// For a reuseport group. During a flood, frames without the mark, frames too short for a mark, and a part of
/// the keep-alives (Thinning::kKeepAliveShift) go aside. Other keep-alives go to their socket if there is
/// one. Everything else goes to the main socket, also a keep-alive that the kernel has joined with other
/// datagrams.
FilterProgram steering(const PortSockets& sockets, const link::Thinning& thinning = {});

/// For a reuseport group of two listeners: connections from these hosts (their IP addresses, all of one
/// family) go to the first, all others to the second. Of an IPv6 address the program compares a hash of 32
/// bits, which depends on `secret`.
FilterProgram steering_by_host(std::span<const SocketAddress> hosts, SocketAddress::Family family,
                               std::uint64_t secret);

/// `option` is SO_ATTACH_FILTER or SO_ATTACH_REUSEPORT_CBPF. Returns 0 or an errno.
int attach_filter(int socket, int option, FilterProgram& program);

}  // namespace cluster::os
