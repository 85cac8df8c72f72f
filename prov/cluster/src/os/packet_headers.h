// Headers that links write themselves in front of a frame: Ethernet, IPv4 or IPv6, UDP. Pure: bytes in, bytes
// out.
//
// A frame on the EtherType path (link/link.h) is the same packet under the provider's EtherType. The IP input
// of the receiving host does not process it, which saves that host one lookup (docs/budget.md).
//
// An IPv4 datagram has no UDP checksum, because the frame has a better one of its own. IPv6 forbids that (RFC
// 8200, 8.1), and segmentation offload needs a checksum either way. In both cases the link writes the sum
// over the pseudo header, and the device or the kernel completes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

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

/// The source of a frame: the hardware address of the interface, and the address of the endpoint.
struct Origin {
  std::array<std::byte, 6> mac;
  SocketAddress address;
};

/// Returns the size of the Ethernet, IP and UDP headers together.
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

/// Reads an Ethernet frame of either type that arrived on the interface `index`. Writes to `out` the payload
/// without padding, and the path back to the sender. Returns false if the frame is not a whole, unfragmented
/// UDP datagram.
bool read_headers(Bytes frame, int index, link::InFrame& out);

/// What the kernel and a packet socket with PACKET_VNET_HDR tell each other about a frame; it stands in front
/// of the frame. This is virtio_net_hdr of <linux/virtio_net.h>, a header that is not valid C++, and lacks
/// UDP segmentation on older systems.
struct OffloadHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;
  static constexpr std::uint8_t kGsoUdpL4 = 5;

  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t headers_size = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

// Frames by which hosts learn the hardware address of an IP address: ARP (RFC 826, RFC 5227) and neighbour
// discovery (RFC 4861). The kernel reads the answers.
/// Returns a frame that tells all hosts of the network that the IP address of `origin` now has the hardware
/// address of `origin`.
std::vector<std::byte> neighbour_announcement(const Origin& origin);

/// Returns a frame that asks all hosts for the hardware address of `peer`, which has the address family of
/// `origin`.
std::vector<std::byte> neighbour_question(const Origin& origin, const SocketAddress& peer);

/// Returns true if the first `prefix_bits` bits of both addresses are equal.
bool same_network(const SocketAddress& one, const SocketAddress& other, unsigned prefix_bits);

}  // namespace cluster::os
