// These functions write and read the Ethernet, IP and UDP headers of frames, for links that bypass the IP
// stack. They make no system calls.
//
// On the EtherType path (link/link.h), a frame has the same headers, except that the EtherType is that of the
// provider. The IP stack of the receiving host therefore does not process the frame, which saves that host
// one lookup (docs/budget.md).
//
// Most frames have no UDP checksum, because the payload contains a stronger checksum. Two kinds of frames
// need a UDP checksum: frames under the EtherType of IPv6 (RFC 8200, 8.1), and super-frames for segmentation
// offload. For these frames the link writes the sum over the pseudo header, and the device or the kernel
// completes the checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "link/link.h"

namespace cluster::os {

using HardwareAddress = std::array<std::byte, 6>;

/// The broadcast address: an Ethernet delivers frames with this destination to all of its hosts.
inline constexpr std::array<std::byte, 6> kAllHosts{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                                    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kHeadersMax = kEthernetBytes + 40 + kUdpBytes;
inline constexpr std::size_t kUdpChecksumOffset = 6;
inline constexpr std::uint16_t kClusterEtherType = 0x88b5;  ///< reserved for experiments (IEEE 802)
std::uint16_t ip_ether_type(SocketAddress::Family family);

/// Reads a number in network byte order.
inline std::uint16_t get16(const std::byte* at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(at[0]) << 8 | std::to_integer<unsigned>(at[1]));
}

/// The source addresses of a frame: the hardware address of the interface, and the address of the endpoint.
struct Origin {
  HardwareAddress mac;
  SocketAddress address;
};

/// Returns the total size of the Ethernet, IP and UDP headers.
std::size_t headers_size(SocketAddress::Family family);

/// The EtherType of a frame, and how its UDP checksum is computed.
enum class Framing : std::uint8_t {
  udp,            ///< the EtherType of IP, with a UDP checksum of 0 ("none")
  udp_sum_later,  ///< the EtherType of IP; the kernel or the device completes the UDP checksum
  own,            ///< the provider's EtherType, with a UDP checksum of 0
};

/// Writes the headers for a datagram of `payload` bytes to `out`, which must have space for headers_size()
/// bytes.
void write_headers(std::byte* out, const Origin& origin, const link::Path& to, std::size_t payload,
                   Framing framing);

/// A header that precedes each frame of a packet socket with PACKET_VNET_HDR. It describes the offloads of
/// the frame. Its layout is that of virtio_net_hdr in <linux/virtio_net.h>. That file is not valid C++, and
/// on older systems it lacks UDP segmentation.
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

/// The headers of single frames to one peer. From frame to frame, these headers differ only in the lengths
/// and in the IPv4 checksum. Therefore the sender writes them once and keeps them. A KeptHeaders cannot hold
/// headers with a UDP checksum.
class KeptHeaders {
 public:
  /// Writes the headers for this path, without a UDP checksum.
  void write(const Origin& origin, const link::Path& to, bool ethertype);
  void forget() { kept_ = false; }
  /// Returns true if the headers were written for this path.
  bool fits(const link::Path& path, bool ethertype) const {
    return kept_ && ethertype == ethertype_ && path.mac_known && path.same_mac(to_) && path.to == to_.to;
  }
  /// Sets the lengths and the IPv4 checksum for a datagram of `payload` bytes, and returns the headers. An
  /// OffloadHeader without offloads precedes them.
  ConstBytes with_payload(std::size_t payload);

 private:
  bool kept_ = false;
  bool ethertype_ = false;
  bool v4_ = false;
  std::size_t size_ = 0;
  std::uint32_t sum_ = 0;  ///< IPv4: the sum of the header with a length of 0
  link::Path to_;
  std::array<std::byte, sizeof(OffloadHeader) + kHeadersMax> bytes_{};
};

/// Reads an Ethernet frame, with the EtherType of IP or of the provider, that arrived on the interface
/// `index`. Stores in `out` the path back to the sender, and the payload without the padding of the frame.
/// Returns false unless a whole, unfragmented UDP datagram follows the IP header directly, without IP options
/// or extension headers.
bool read_headers(Bytes frame, int index, link::InFrame& out);

/// The headers of a frame that read_headers() has read. Most frames come from the sender of the previous
/// frame. Their headers differ from those of the previous frame only in lengths, the IPv4 identification,
/// checksums, and sometimes the destination's hardware address.
class LastHeaders {
 public:
  /// Remembers the headers of `frame`, which read_headers() has read into `out`.
  void remember(ConstBytes frame, const link::InFrame& out);
  void forget() { headers_ = 0; }
  /// Does the same as read_headers() if the headers of the frame are like those remembered. Otherwise returns
  /// false, and `out` is unspecified.
  [[gnu::always_inline]] bool read(Bytes frame, link::InFrame& out) const {
    Words words;
    if (headers_ == 0 || frame.size() < sizeof words) return false;
    std::memcpy(words.data(), frame.data(), sizeof words);
    const Pair different = ((words[0] & mask_[0]) ^ bytes_[0]) | ((words[1] & mask_[1]) ^ bytes_[1]) |
                           ((words[2] & mask_[2]) ^ bytes_[2]) | ((words[3] & mask_[3]) ^ bytes_[3]);
    const std::size_t end = length_excludes_ + get16(frame.data() + length_at_);
    const std::size_t length = get16(frame.data() + headers_ - kUdpBytes + 4);
    if ((different[0] | different[1]) != 0 || end > frame.size() || length < kUdpBytes ||
        headers_ - kUdpBytes + length > end) {
      return false;
    }
    out.bytes = frame.subspan(headers_, length - kUdpBytes);
    out.from = from_;
    return true;
  }

 private:
  /// Two words that the compiler handles with one instruction.
  using Pair [[gnu::vector_size(16)]] = std::uint64_t;
  using Words = std::array<Pair, 4>;  ///< no longer than the shortest frame of the protocol with its headers

  Words bytes_{};  ///< the bytes that are the same in all frames of this sender
  Words mask_{};
  std::size_t headers_ = 0;          ///< size of all headers; 0 if none are remembered
  std::size_t length_at_ = 0;        ///< offset of the length field of IP
  std::size_t length_excludes_ = 0;  ///< bytes of the frame that the length field of IP does not count
  link::Path from_;
};

// Hosts find and announce the hardware address of an IP address by ARP (RFC 826, RFC 5227) or neighbour
// discovery (RFC 4861). The next two functions build such frames. The kernel reads the answers.

/// Returns a frame that announces to all hosts of the network that the IP address in `origin` now has the
/// hardware address in `origin`.
std::vector<std::byte> neighbour_announcement(const Origin& origin);

/// Returns a frame that asks for the hardware address of `peer`. An ARP frame goes to all hosts of the
/// network. A neighbour discovery frame goes only to the multicast group that contains `peer`. `peer` and
/// `origin` must have the same address family.
std::vector<std::byte> neighbour_question(const Origin& origin, const SocketAddress& peer);

/// Returns true if both addresses are of one family, and their first `prefix_bits` bits are equal.
bool same_network(const SocketAddress& one, const SocketAddress& other, unsigned prefix_bits);

}  // namespace cluster::os
