#include "os/neighbour_frames.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace cluster::os {
namespace {

using HardwareAddress = std::array<std::byte, 6>;
using Frame = std::vector<std::byte>;

constexpr HardwareAddress kAllHosts{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                    std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
constexpr unsigned kArp = 0x0806;
constexpr unsigned kArpRequest = 1;
constexpr std::byte kIcmp{58};
constexpr std::byte kNoRouterHopLimit{255};  // shows that no router has forwarded it
constexpr std::byte kSolicitation{135};
constexpr std::byte kAdvertisement{136};
constexpr std::byte kOverride{0x20};
constexpr std::byte kSourceOption{1};
constexpr std::byte kTargetOption{2};
constexpr std::size_t kIcmpBytes = 32;  // with one option
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

std::uint32_t sum(ConstBytes bytes) {
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    total += std::to_integer<std::uint32_t>(bytes[i]) << 8 | std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  return total;
}

/// To a multicast group, whose hardware address follows from its own (RFC 2464).
Frame discovery(const Origin& origin, const std::array<std::byte, 16>& group, std::byte type, std::byte flags,
                ConstBytes target, std::byte option) {
  Frame icmp{type, std::byte{0}, std::byte{0}, std::byte{0}, flags, std::byte{0}, std::byte{0}, std::byte{0}};
  append(icmp, target);
  icmp.push_back(option);
  icmp.push_back(std::byte{1});  // times 8 bytes
  append(icmp, origin.mac);
  std::uint32_t total =
      sum(origin.address.ip()) + sum(group) + kIcmpBytes + std::to_integer<std::uint32_t>(kIcmp) + sum(icmp);
  while (total >> 16 != 0) total = (total & 0xffff) + (total >> 16);
  icmp[kSumOffset] = static_cast<std::byte>(~total >> 8);
  icmp[kSumOffset + 1] = static_cast<std::byte>(~total);

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
