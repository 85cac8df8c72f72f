#include "udp_packet.h"

#include <algorithm>

#include "os/packet_headers.h"

namespace cluster::dissect {
namespace {

constexpr unsigned kIpv4 = 0x0800, kIpv6 = 0x86DD, kVlan = 0x8100, kServiceVlan = 0x88A8;
constexpr unsigned kEtherType = os::kClusterEtherType;  // IP of either version under another type
constexpr unsigned kUdp = 17;
constexpr std::size_t kEthernetBytes = 14, kVlanBytes = 4, kAnyBytes = 20;
constexpr std::size_t kIpv4Bytes = 20, kIpv6Bytes = 40, kUdpBytes = 8;

unsigned byte_at(ConstBytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }
unsigned half_at(ConstBytes bytes, std::size_t at) {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

/// Removes the headers before IP; empty if the packet is not IP.
ConstBytes ip_of(ConstBytes packet, Framing framing) {
  if (framing == Framing::ip) return packet;
  const std::size_t header = framing == Framing::ethernet ? kEthernetBytes : kAnyBytes;
  if (packet.size() < header) return {};
  unsigned type = half_at(packet, framing == Framing::ethernet ? kEthernetBytes - 2 : 0);
  packet = packet.subspan(header);
  while ((type == kVlan || type == kServiceVlan) && packet.size() >= kVlanBytes) {
    type = half_at(packet, 2);
    packet = packet.subspan(kVlanBytes);
  }
  return type == kIpv4 || type == kIpv6 || type == kEtherType ? packet : ConstBytes{};
}

std::uint16_t port_at(ConstBytes udp, std::size_t at) { return static_cast<std::uint16_t>(half_at(udp, at)); }

/// The payload: the length in the UDP header, at most what was captured. A super-frame above 64 KB has UDP
/// length 0.
bool read_udp(ConstBytes udp, UdpPacket& out) {
  if (udp.size() < kUdpBytes) return false;
  const std::size_t length = half_at(udp, 4);
  if (length != 0 && length < kUdpBytes) return false;
  out.cut_off = length > udp.size();
  out.payload = udp.first(length == 0 ? udp.size() : std::min(length, udp.size())).subspan(kUdpBytes);
  return true;
}

bool read_ipv4(ConstBytes ip, UdpPacket& out) {
  const std::size_t header = (byte_at(ip, 0) & 15) * 4;
  const bool fragment = (half_at(ip, 6) & 0x3FFF) != 0;
  if (header < kIpv4Bytes || ip.size() < header + kUdpBytes || fragment || byte_at(ip, 9) != kUdp)
    return false;
  const ConstBytes udp = ip.subspan(header);
  out.from = SocketAddress::v4(ip.data() + 12, port_at(udp, 0));
  out.to = SocketAddress::v4(ip.data() + 16, port_at(udp, 2));
  return read_udp(udp, out);
}

bool read_ipv6(ConstBytes ip, UdpPacket& out) {
  if (ip.size() < kIpv6Bytes + kUdpBytes || byte_at(ip, 6) != kUdp) return false;
  const ConstBytes udp = ip.subspan(kIpv6Bytes);
  out.from = SocketAddress::v6(ip.data() + 8, port_at(udp, 0));
  out.to = SocketAddress::v6(ip.data() + 24, port_at(udp, 2));
  return read_udp(udp, out);
}

}  // namespace

std::optional<UdpPacket> find_udp_packet(ConstBytes packet, Framing framing) {
  const ConstBytes ip = ip_of(packet, framing);
  if (ip.size() < kIpv4Bytes) return std::nullopt;
  UdpPacket found;
  const unsigned version = byte_at(ip, 0) >> 4;
  const bool good = version == 4 ? read_ipv4(ip, found) : version == 6 && read_ipv6(ip, found);
  return good ? std::optional(found) : std::nullopt;
}

}  // namespace cluster::dissect
