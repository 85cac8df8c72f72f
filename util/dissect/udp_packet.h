// Finds the UDP datagram in a captured packet: Ethernet with or without VLAN tags, Linux's "any" interface,
// or IP directly; IPv4 and IPv6. Pure. It skips packets with fragments or extension headers: the provider
// sends none.
#pragma once

#include <optional>

#include "base/address.h"
#include "base/bytes.h"

namespace cluster::dissect {

/// How the bytes of a capture begin.
enum class Framing { ethernet, any_interface, ip };

/// Borrows from the bytes it was found in.
struct UdpPacket {
  SocketAddress from;
  SocketAddress to;
  ConstBytes payload;
  bool cut_off = false;  ///< the capture holds less of it than was sent
};

/// The datagram in `packet`; nothing if there is none.
std::optional<UdpPacket> find_udp_packet(ConstBytes packet, Framing framing);

}  // namespace cluster::dissect
