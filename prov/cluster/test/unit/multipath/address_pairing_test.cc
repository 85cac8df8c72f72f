// Which rail is paired with which address of the peer.
#include "multipath/address_pairing.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace cluster::multipath {
namespace {

SocketAddress v4(const char* ip) {
  std::byte bytes[4];
  EXPECT_EQ(inet_pton(AF_INET, ip, bytes), 1);
  return SocketAddress::v4(bytes, 5000);
}

using RailAndAddress = std::pair<int, SocketAddress>;

std::vector<RailAndAddress> pairs(const std::vector<Rail>& own, const std::vector<SocketAddress>& peer,
                                  std::uint8_t first) {
  std::vector<RailAndAddress> result;
  for (const link::Path& path : further_paths(own, peer, {peer[0], {}, false, first})) {
    result.emplace_back(path.link, path.to);
  }
  return result;
}

TEST(AddressPairing, WhatLiesInOneNetworkBelongsTogether) {
  const std::vector<Rail> own{
      {v4("10.0.0.1"), 24, "eth0"}, {v4("10.0.1.1"), 24, "eth1"}, {v4("10.0.2.1"), 24, "eth2"}};
  const std::vector<SocketAddress> peer{v4("10.0.2.2"), v4("10.0.0.2"), v4("10.0.1.2")};
  EXPECT_EQ(pairs(own, peer, 2), (std::vector<RailAndAddress>{{0, peer[1]}, {1, peer[2]}}));
  EXPECT_EQ(rail_towards(own, v4("10.0.1.9")), 1);
  EXPECT_EQ(rail_towards(own, v4("192.168.0.1")), 0);
}

TEST(AddressPairing, WithoutAHintThePlaceDecides) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"}, {v4("10.0.1.1"), 24, "eth1"}};
  const std::vector<SocketAddress> peer{v4("172.16.0.2"), v4("172.16.1.2")};
  EXPECT_EQ(pairs(own, peer, 0), (std::vector<RailAndAddress>{{1, peer[1]}}));
}

TEST(AddressPairing, OneInterfaceReachesEveryAddress) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"}};
  const std::vector<SocketAddress> peer{v4("10.0.0.2"), v4("10.0.0.3")};
  EXPECT_EQ(pairs(own, peer, 0), (std::vector<RailAndAddress>{{0, peer[1]}}));
  EXPECT_TRUE(pairs({}, peer, 0).empty());
}

SocketAddress queue_pair(const char* ip, std::uint32_t number) {
  std::byte gid[SocketAddress::kGidBytes]{};
  gid[10] = gid[11] = std::byte{0xff};
  EXPECT_EQ(inet_pton(AF_INET, ip, gid + 12), 1);
  return SocketAddress::queue_pair(gid, number);
}

TEST(AddressPairing, QueuePairsGoWithQueuePairsOfTheirSubnetAlone) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"},
                              {queue_pair("10.0.0.1", 17), 96 + 24, "rxe0/1", 1024}};
  const std::vector<SocketAddress> near{v4("10.0.0.2"), queue_pair("10.0.0.2", 18)};
  EXPECT_EQ(pairs(own, near, 0), (std::vector<RailAndAddress>{{1, near[1]}}));
  EXPECT_TRUE(pairs(own, {{v4("10.0.1.2"), queue_pair("10.0.1.2", 18)}}, 0).empty()) << "another subnet";
  EXPECT_TRUE(pairs({own[0]}, near, 0).empty()) << "only the peer has a device";
  EXPECT_TRUE(pairs(own, {near[0]}, 0).empty()) << "only this side has a device";
  EXPECT_TRUE(is_local_address(own, queue_pair("10.0.0.1", 99))) << "another process of this node";
}

TEST(AddressPairing, WhatBothSidesHaveIsNotThePeers) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"}, {v4("172.17.0.1"), 16, "eth1"}};
  EXPECT_TRUE(is_local_address(own, v4("172.17.0.1")));
  EXPECT_TRUE(is_local_address(own, v4("172.17.0.1").with_port(1))) << "another process of this node";
  EXPECT_FALSE(is_local_address(own, v4("172.17.0.2")));
  EXPECT_FALSE(is_local_address({}, v4("172.17.0.1")));
}

}  // namespace
}  // namespace cluster::multipath
