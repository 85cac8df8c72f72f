// The headers in front of a frame on the wire, for links that write them themselves: Ethernet, IPv4 or IPv6,
// UDP. Pure: bytes in, bytes out.
//
// A frame on the EtherType path (link/link.h) is the same packet under the provider's EtherType, which the IP
// input of the receiving host does not process: that saves the host one lookup (docs/budget.md).
//
// IPv4 goes without a UDP checksum (the frame has a better one of its own). IPv6 forbids that (RFC
// 8200, 8.1), and segmentation offload needs one either way: then the sum over the pseudo header is written,
// and the device or the kernel completes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/bytes.h"
#include "link/link.h"

namespace cluster::os {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kHeadersMax = kEthernetBytes + 40 + kUdpBytes;
inline constexpr std::size_t kUdpChecksumOffset = 6;
inline constexpr std::uint16_t kClusterEtherType = 0x88b5;  ///< for experiments (IEEE 802)
std::uint16_t ip_ether_type(SocketAddress::Family family);

/// The source of a frame: interface and endpoint.
struct Origin {
  std::array<std::byte, 6> mac;
  SocketAddress address;
};

/// Ethernet, IP and UDP header together.
std::size_t headers_size(SocketAddress::Family family);

/// How a datagram is framed.
enum class Framing : std::uint8_t {
  udp,            ///< the UDP checksum is 0 ("none")
  udp_sum_later,  ///< the kernel or the device completes the checksum
  own,            ///< the EtherType path; no checksum either
};

/// Writes headers_size() bytes for a datagram of `payload` bytes.
void write_headers(std::byte* out, const Origin& origin, const link::Path& to, std::size_t payload,
                   Framing framing);

/// Reads an Ethernet frame of either type that arrived on the interface `index`: payload without padding,
/// and the way back. False if it is not a whole, unfragmented UDP datagram.
bool read_headers(Bytes frame, int index, link::InFrame& out);

}  // namespace cluster::os
