#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "os/packet_headers.h"

namespace cluster::os {
namespace {

std::vector<std::byte> bytes_from(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

constexpr std::array<std::byte, 6> kMac{std::byte{2}, std::byte{0}, std::byte{0},
                                        std::byte{0}, std::byte{0}, std::byte{7}};

SocketAddress host_v4(int last) { return SocketAddress::v4(bytes_from({10, 0, 0, last}).data(), 0); }

SocketAddress host_v6(int last) {
  return SocketAddress::v6(bytes_from({0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa, 0xb, last}).data(),
                           0);
}

TEST(NeighbourFrames, AnnouncesAnIpv4AddressAsTheRfcWantsIt) {
  EXPECT_EQ(neighbour_announcement({kMac, host_v4(1)}),
            bytes_from({255, 255, 255, 255, 255, 255, 2,  0, 0, 0, 0, 7, 8, 6,  // Ethernet
                        0,   1,   8,   0,   6,   4,   0,  1,                    // a request (RFC 5227, 1.2)
                        2,   0,   0,   0,   0,   7,   10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1}));
}

TEST(NeighbourFrames, AsksAllForAnIpv4Address) {
  const std::vector<std::byte> question = neighbour_question({kMac, host_v4(1)}, host_v4(2));
  std::vector<std::byte> expected = neighbour_announcement({kMac, host_v4(1)});
  expected.back() = std::byte{2};
  EXPECT_EQ(question, expected);
}

/// Over the pseudo header and what lies behind the IP header, its own field included (RFC 4443, 2.3).
bool sum_is_right(const std::vector<std::byte>& frame) {
  std::uint32_t sum = 58 + 32;
  for (std::size_t i = 14 + 8; i < frame.size(); i += 2) {
    sum += std::to_integer<std::uint32_t>(frame[i]) << 8 | std::to_integer<std::uint32_t>(frame[i + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

TEST(NeighbourFrames, AnnouncesAnIpv6AddressToAllNodes) {
  const std::vector<std::byte> frame = neighbour_announcement({kMac, host_v6(1)});
  ASSERT_EQ(frame.size(), 14U + 40 + 32);
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).first(6), bytes_from({0x33, 0x33, 0, 0, 0, 1})));
  EXPECT_EQ(frame[14 + 7], std::byte{255}) << "hop limit (RFC 4861, 7.1)";
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).subspan(14 + 40, 2), bytes_from({136, 0})));
  EXPECT_EQ(frame[14 + 40 + 4], std::byte{0x20}) << "overrides what is known";
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).subspan(14 + 40 + 8, 16), host_v6(1).ip()));
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).last(8), bytes_from({2, 1, 2, 0, 0, 0, 0, 7})));
  EXPECT_TRUE(sum_is_right(frame));
}

TEST(NeighbourFrames, AsksTheSolicitedNodesForAnIpv6Address) {
  const std::vector<std::byte> frame = neighbour_question({kMac, host_v6(1)}, host_v6(2));
  ASSERT_EQ(frame.size(), 14U + 40 + 32);
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).first(6), bytes_from({0x33, 0x33, 0xff, 0xa, 0xb, 2})));
  EXPECT_EQ(frame[14 + 40], std::byte{135});
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).subspan(14 + 40 + 8, 16), host_v6(2).ip()));
  EXPECT_TRUE(std::ranges::equal(ConstBytes(frame).last(8), bytes_from({1, 1, 2, 0, 0, 0, 0, 7})));
  EXPECT_TRUE(sum_is_right(frame));
}

TEST(NeighbourFrames, NetworksEndAtAnyBit) {
  EXPECT_TRUE(same_network(host_v4(1), host_v4(254), 24));
  EXPECT_TRUE(same_network(host_v4(128), host_v4(255), 25));
  EXPECT_FALSE(same_network(host_v4(127), host_v4(128), 25));
  EXPECT_FALSE(same_network(host_v4(1), host_v6(1), 0)) << "of two families";
  EXPECT_TRUE(same_network(host_v6(2), host_v6(3), 127));
  EXPECT_FALSE(same_network(host_v6(2), host_v6(3), 128));
}

}  // namespace
}  // namespace cluster::os
