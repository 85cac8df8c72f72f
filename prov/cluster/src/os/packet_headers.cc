#include "os/packet_headers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace cluster::os {
namespace {

constexpr std::uint16_t kTypeV4 = 0x0800;
constexpr std::uint16_t kTypeV6 = 0x86dd;
constexpr std::byte kUdp{17};
constexpr std::byte kHopLimit{64};
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentBits = 0x3fff;
constexpr std::size_t kV4Bytes = 20;
constexpr std::size_t kV6Bytes = 40;

void put16(std::byte* at, std::size_t value) {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}

/// Returns the sum of `start` and all 16-bit words of `bytes` (RFC 1071). The sum is not folded yet. The size
/// of `bytes` must be even.
std::uint32_t sum(ConstBytes bytes, std::uint32_t start) {
  for (std::size_t i = 0; i < bytes.size(); i += 2) start += get16(bytes.data() + i);
  return start;
}

std::uint16_t fold(std::uint32_t value) {
  while (value >> 16 != 0) value = (value & 0xffff) + (value >> 16);
  return static_cast<std::uint16_t>(value);
}

void write_v4(std::byte* ip, const Origin& origin, const SocketAddress& to, std::size_t udp_size) {
  std::fill_n(ip, kV4Bytes, std::byte{0});
  ip[0] = std::byte{0x45};
  put16(ip + 2, kV4Bytes + udp_size);
  put16(ip + 6, kDontFragment);  // with this flag, the identification has no meaning (RFC 6864) and is 0
  ip[8] = kHopLimit;
  ip[9] = kUdp;
  std::copy_n(origin.address.ip().data(), 4, ip + 12);
  std::copy_n(to.ip().data(), 4, ip + 16);
  put16(ip + 10, static_cast<std::uint16_t>(~fold(sum({ip, kV4Bytes}, 0))));
}

void write_v6(std::byte* ip, const Origin& origin, const SocketAddress& to, std::size_t udp_size) {
  std::fill_n(ip, 8, std::byte{0});
  ip[0] = std::byte{0x60};
  put16(ip + 4, udp_size);
  ip[6] = kUdp;
  ip[7] = kHopLimit;
  std::copy_n(origin.address.ip().data(), 16, ip + 8);
  std::copy_n(to.ip().data(), 16, ip + 24);
}

bool read_v4(ConstBytes packet, ConstBytes& datagram, SocketAddress& from) {
  if (packet.size() < kV4Bytes || packet[0] != std::byte{0x45} || packet[9] != kUdp) return false;
  if ((get16(packet.data() + 6) & kFragmentBits) != 0) return false;
  const std::size_t total = get16(packet.data() + 2);
  if (total < kV4Bytes || total > packet.size()) return false;
  datagram = packet.subspan(kV4Bytes, total - kV4Bytes);
  from = SocketAddress::v4(packet.data() + 12, 0);
  return true;
}

bool read_v6(ConstBytes packet, int index, ConstBytes& datagram, SocketAddress& from) {
  if (packet.size() < kV6Bytes || (packet[0] & std::byte{0xf0}) != std::byte{0x60} || packet[6] != kUdp)
    return false;
  const std::size_t length = get16(packet.data() + 4);
  if (length > packet.size() - kV6Bytes) return false;
  datagram = packet.subspan(kV6Bytes, length);
  const bool link_local = packet[8] == std::byte{0xfe} && (packet[9] & std::byte{0xc0}) == std::byte{0x80};
  from = SocketAddress::v6(packet.data() + 8, 0, link_local ? static_cast<std::uint32_t>(index) : 0);
  return true;
}

}  // namespace

std::uint16_t ip_ether_type(SocketAddress::Family family) {
  return family == SocketAddress::Family::v6 ? kTypeV6 : kTypeV4;
}

std::size_t headers_size(SocketAddress::Family family) {
  return kEthernetBytes + (family == SocketAddress::Family::v6 ? kV6Bytes : kV4Bytes) + kUdpBytes;
}

void write_headers(std::byte* out, const Origin& origin, const link::Path& to, std::size_t payload,
                   Framing framing) {
  const bool v6 = origin.address.family() == SocketAddress::Family::v6;
  const std::size_t udp_size = kUdpBytes + payload;
  std::copy(to.mac.begin(), to.mac.end(), out);
  std::copy(origin.mac.begin(), origin.mac.end(), out + 6);
  put16(out + 12, framing == Framing::own ? kClusterEtherType : ip_ether_type(origin.address.family()));
  std::byte* const ip = out + kEthernetBytes;
  v6 ? write_v6(ip, origin, to.to, udp_size) : write_v4(ip, origin, to.to, udp_size);
  std::byte* const udp = ip + (v6 ? kV6Bytes : kV4Bytes);
  put16(udp, origin.address.port());
  put16(udp + 2, to.to.port());
  put16(udp + 4, udp_size);
  put16(udp + kUdpChecksumOffset, 0);
  if (framing == Framing::udp_sum_later) {
    const std::uint32_t start = std::to_integer<std::uint32_t>(kUdp) + static_cast<std::uint32_t>(udp_size);
    put16(udp + kUdpChecksumOffset, fold(sum(to.to.ip(), sum(origin.address.ip(), start))));
  }
}

void KeptHeaders::write(const Origin& origin, const link::Path& to, bool ethertype) {
  std::byte* const headers = bytes_.data() + sizeof(OffloadHeader);
  write_headers(headers, origin, to, 0, ethertype ? Framing::own : Framing::udp);
  to_ = to;
  ethertype_ = ethertype;
  v4_ = origin.address.family() == SocketAddress::Family::v4;
  size_ = headers_size(origin.address.family());
  if (v4_) {
    std::byte* const ip = headers + kEthernetBytes;
    put16(ip + 2, 0);
    put16(ip + 10, 0);
    sum_ = sum({ip, kV4Bytes}, 0);
  }
  kept_ = true;
}

ConstBytes KeptHeaders::with_payload(std::size_t payload) {
  std::byte* const ip = bytes_.data() + sizeof(OffloadHeader) + kEthernetBytes;
  const std::size_t udp_size = kUdpBytes + payload;
  if (v4_) {
    put16(ip + 2, kV4Bytes + udp_size);
    put16(ip + 10, static_cast<std::uint16_t>(~fold(sum_ + static_cast<std::uint32_t>(kV4Bytes + udp_size))));
    put16(ip + kV4Bytes + 4, udp_size);
  } else {
    put16(ip + 4, udp_size);
    put16(ip + kV6Bytes + 4, udp_size);
  }
  return {bytes_.data(), sizeof(OffloadHeader) + size_};
}

bool read_headers(Bytes frame, int index, link::InFrame& out) {
  if (frame.size() < kEthernetBytes) return false;
  const std::uint16_t type = get16(frame.data() + 12);
  const ConstBytes packet = frame.subspan(kEthernetBytes);
  ConstBytes datagram;
  SocketAddress from;
  const bool ethertype = type == kClusterEtherType;
  const bool whole = (type == kTypeV4 || ethertype) && read_v4(packet, datagram, from);
  const bool whole_v6 = !whole && (type == kTypeV6 || ethertype) && read_v6(packet, index, datagram, from);
  if (!(whole || whole_v6) || datagram.size() < kUdpBytes) return false;
  const std::size_t length = get16(datagram.data() + 4);
  if (length < kUdpBytes || length > datagram.size()) return false;
  const auto at = static_cast<std::size_t>(datagram.data() - frame.data());
  out.bytes = frame.subspan(at + kUdpBytes, length - kUdpBytes);
  out.from.to = from.with_port(get16(datagram.data()));
  std::copy_n(frame.data() + 6, out.from.mac.size(), out.from.mac.begin());
  out.from.mac_known = true;
  out.from.ethertype = ethertype;
  return true;
}

void LastHeaders::remember(ConstBytes frame, const link::InFrame& out) {
  const bool v4 = out.from.to.family() == SocketAddress::Family::v4;
  headers_ = headers_size(out.from.to.family());
  length_at_ = kEthernetBytes + (v4 ? 2 : 4);
  length_excludes_ = kEthernetBytes + (v4 ? 0 : kV6Bytes);
  std::array<std::byte, sizeof mask_> mask{};
  std::fill_n(mask.begin(), headers_, std::byte{0xff});
  const auto differs = [&](std::size_t at, std::size_t bytes) {
    std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(at), bytes, std::byte{0});
  };
  differs(0, 6);  // the destination, which may be the broadcast address
  differs(length_at_, 2);
  if (v4) differs(kEthernetBytes + 4, 2);
  if (v4) differs(kEthernetBytes + 10, 2);
  differs(headers_ - kUdpBytes + 4, 4);
  std::memcpy(mask_.data(), mask.data(), sizeof mask_);
  bytes_ = {};
  std::memcpy(bytes_.data(), frame.data(), headers_);
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] &= mask_[i];
  from_ = out.from;
}

namespace {

using Frame = std::vector<std::byte>;

constexpr unsigned kArp = 0x0806;
constexpr unsigned kArpRequest = 1;
constexpr std::byte kIcmp{58};
// Receivers of neighbour discovery require this hop limit, because it shows that no router has forwarded the
// frame.
constexpr std::byte kNoRouterHopLimit{255};
constexpr std::byte kSolicitation{135};
constexpr std::byte kAdvertisement{136};
constexpr std::byte kOverride{0x20};
constexpr std::byte kSourceOption{1};
constexpr std::byte kTargetOption{2};
constexpr std::size_t kIcmpBytes = 32;  // size of a message with one option
constexpr std::size_t kSumOffset = 2;

void append(Frame& frame, ConstBytes bytes) { frame.insert(frame.end(), bytes.begin(), bytes.end()); }
void append16(Frame& frame, std::size_t value) {
  frame.push_back(static_cast<std::byte>(value >> 8));
  frame.push_back(static_cast<std::byte>(value));
}

Frame ethernet(const HardwareAddress& to, const Origin& origin, unsigned type) {
  Frame frame(to.begin(), to.end());
  append(frame, origin.mac);
  append16(frame, type);
  return frame;
}

Frame arp_request(const Origin& origin, ConstBytes target) {
  Frame frame = ethernet(kAllHosts, origin, kArp);
  append16(frame, 1);  // Ethernet
  append16(frame, ip_ether_type(SocketAddress::Family::v4));
  frame.push_back(std::byte{6});
  frame.push_back(std::byte{4});
  append16(frame, kArpRequest);
  append(frame, origin.mac);
  append(frame, origin.address.ip());
  append(frame, HardwareAddress{});
  append(frame, target);
  return frame;
}

/// Builds a neighbour discovery frame to a multicast group. The hardware address of a group follows from its
/// IP address (RFC 2464).
Frame discovery(const Origin& origin, const std::array<std::byte, 16>& group, std::byte type, std::byte flags,
                ConstBytes target, std::byte option) {
  Frame icmp{type, std::byte{0}, std::byte{0}, std::byte{0}, flags, std::byte{0}, std::byte{0}, std::byte{0}};
  append(icmp, target);
  icmp.push_back(option);
  icmp.push_back(std::byte{1});  // length of the option, in units of 8 bytes
  append(icmp, origin.mac);
  const std::uint32_t start = kIcmpBytes + std::to_integer<std::uint32_t>(kIcmp);
  const std::uint32_t total = sum(icmp, sum(group, sum(origin.address.ip(), start)));
  put16(icmp.data() + kSumOffset, static_cast<std::uint16_t>(~fold(total)));

  const HardwareAddress to{std::byte{0x33}, std::byte{0x33}, group[12], group[13], group[14], group[15]};
  Frame frame = ethernet(to, origin, ip_ether_type(SocketAddress::Family::v6));
  for (const int each : {0x60, 0, 0, 0}) frame.push_back(static_cast<std::byte>(each));
  append16(frame, kIcmpBytes);
  frame.push_back(kIcmp);
  frame.push_back(kNoRouterHopLimit);
  append(frame, origin.address.ip());
  append(frame, group);
  append(frame, icmp);
  return frame;
}

}  // namespace

std::vector<std::byte> neighbour_announcement(const Origin& origin) {
  const ConstBytes own = origin.address.ip();
  if (origin.address.family() == SocketAddress::Family::v4) return arp_request(origin, own);
  const std::array<std::byte, 16> all_nodes{
      std::byte{0xff}, std::byte{2}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{1}};
  return discovery(origin, all_nodes, kAdvertisement, kOverride, own, kTargetOption);
}

std::vector<std::byte> neighbour_question(const Origin& origin, const SocketAddress& peer) {
  const ConstBytes target = peer.ip();
  if (peer.family() == SocketAddress::Family::v4) return arp_request(origin, target);
  const std::array<std::byte, 16> solicited{
      std::byte{0xff}, std::byte{2},    {},         {},         {},        {}, {}, {}, {}, {}, {},
      std::byte{1},    std::byte{0xff}, target[13], target[14], target[15]};
  return discovery(origin, solicited, kSolicitation, std::byte{0}, target, kSourceOption);
}

bool same_network(const SocketAddress& one, const SocketAddress& other, unsigned prefix_bits) {
  const ConstBytes a = one.ip();
  const ConstBytes b = other.ip();
  if (a.size() != b.size() || prefix_bits > 8 * a.size()) return false;
  for (std::size_t i = 0; 8 * i < prefix_bits; ++i) {
    const unsigned kept = std::min<unsigned>(8, prefix_bits - static_cast<unsigned>(8 * i));
    const std::byte mask = static_cast<std::byte>(0xff00U >> kept);
    if ((a[i] & mask) != (b[i] & mask)) return false;
  }
  return true;
}

}  // namespace cluster::os
