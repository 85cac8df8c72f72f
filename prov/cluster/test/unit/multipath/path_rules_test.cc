// The rules about rails: who is paired with whom, when a rail is believed in, which one is next.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "multipath/address_pairing.h"
#include "multipath/path_scheduler.h"
#include "multipath/path_validator.h"

namespace cluster::multipath {
namespace {

using News = Health::News;

SocketAddress v4(const char* ip) {
  std::byte bytes[4];
  EXPECT_EQ(inet_pton(AF_INET, ip, bytes), 1);
  return SocketAddress::v4(bytes, 5000);
}

TEST(Pairing, WhatLiesInOneNetworkBelongsTogether) {
  const std::vector<Rail> own{
      {v4("10.0.0.1"), 24, "eth0"}, {v4("10.0.1.1"), 24, "eth1"}, {v4("10.0.2.1"), 24, "eth2"}};
  const std::vector<SocketAddress> peer{v4("10.0.2.2"), v4("10.0.0.2"), v4("10.0.1.2")};
  const std::vector<PathCandidate> ways = further_paths(own, peer, {2, peer[0]});
  EXPECT_EQ(ways, (std::vector<PathCandidate>{{0, peer[1]}, {1, peer[2]}}));
  EXPECT_EQ(rail_towards(own, v4("10.0.1.9")), 1);
  EXPECT_EQ(rail_towards(own, v4("192.168.0.1")), 0);
}

TEST(Pairing, WithoutAHintThePlaceDecides) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"}, {v4("10.0.1.1"), 24, "eth1"}};
  const std::vector<SocketAddress> peer{v4("172.16.0.2"), v4("172.16.1.2")};
  EXPECT_EQ(further_paths(own, peer, {0, peer[0]}), (std::vector<PathCandidate>{{1, peer[1]}}));
}

TEST(Pairing, OneInterfaceReachesEveryAddress) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"}};
  const std::vector<SocketAddress> peer{v4("10.0.0.2"), v4("10.0.0.3")};
  EXPECT_EQ(further_paths(own, peer, {0, peer[0]}), (std::vector<PathCandidate>{{0, peer[1]}}));
  EXPECT_TRUE(further_paths({}, peer, {0, peer[0]}).empty());
}

TEST(Pairing, WhatBothSidesHaveIsNotThePeers) {
  const std::vector<Rail> own{{v4("10.0.0.1"), 24, "eth0"}, {v4("172.17.0.1"), 16, "eth1"}};
  EXPECT_TRUE(is_local_address(own, v4("172.17.0.1")));
  EXPECT_TRUE(is_local_address(own, v4("172.17.0.1").with_port(1))) << "another process of this node";
  EXPECT_FALSE(is_local_address(own, v4("172.17.0.2")));
  EXPECT_FALSE(is_local_address({}, v4("172.17.0.1")));
}

TEST(Health, AFreshRailIsAskedAtGrowingDistancesAndTalkedAboutOnce) {
  Health health(false);
  Time now{};
  unsigned words = 0;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(health.wants_probe(now));
    words += health.asked(now) == News::silent ? 1 : 0;
    EXPECT_FALSE(health.wants_probe(now));
    now += Health::kChallengeIntervalMax;
  }
  EXPECT_EQ(words, 1u);
  EXPECT_EQ(health.answered(), News::works);
  EXPECT_TRUE(health.up());
}

TEST(Health, ThreeRepairsElsewhereWithoutAnArrivalAreTooMany) {
  Health health(true);
  EXPECT_FALSE(health.strike(Time(1ms)));
  EXPECT_FALSE(health.strike(Time(2ms)));
  EXPECT_EQ(health.arrived(Time(2ms)), News::none);
  EXPECT_FALSE(health.strike(Time(3ms)));
  EXPECT_FALSE(health.strike(Time(4ms)));
  EXPECT_TRUE(health.strike(Time(5ms)));
  EXPECT_FALSE(health.up());
  EXPECT_TRUE(health.wants_probe(Time(5ms)));
  health.arrived(Time(4ms));  // sent before it was doubted: proves nothing
  EXPECT_FALSE(health.up());
  EXPECT_EQ(health.answered(), News::none) << "nobody was told of so short a doubt";
  EXPECT_TRUE(health.up());
}

DeliveryEstimate estimate(Duration way, Duration each, std::size_t in_flight, std::size_t allowance) {
  return {true, true, way, each, in_flight, allowance};
}

TEST(Choice, AnIdleFlowTakesTheFastest) {
  const DeliveryEstimate rails[] = {estimate(20us, 1us, 0, 8), estimate(5us, 1us, 0, 8)};
  EXPECT_EQ(earliest_delivery(rails), 1u);
}

TEST(Choice, ABusyOneTakesWhatDeliversFirst) {
  const DeliveryEstimate rails[] = {estimate(20us, 1us, 0, 8), estimate(5us, 1us, 30, 8)};
  EXPECT_EQ(earliest_delivery(rails), 0u);
}

TEST(Choice, AFastRailThatIsHeldBackIsWaitedFor) {
  const DeliveryEstimate much_slower[] = {estimate(200us, 10us, 4, 8), estimate(5us, 1us, 30, 0)};
  EXPECT_EQ(earliest_delivery(much_slower), std::nullopt);
  const DeliveryEstimate not_much[] = {estimate(40us, 1us, 4, 8), estimate(5us, 1us, 30, 0)};
  EXPECT_EQ(earliest_delivery(not_much), 0u);
}

TEST(Choice, WhatIsNotKnownIsTriedAndWhatIsDownIsNot) {
  DeliveryEstimate rails[] = {estimate(5us, 1us, 0, 8), estimate(5us, 1us, 0, 8), estimate(1us, 1us, 0, 8)};
  rails[1].known = false;
  rails[2].up = false;
  EXPECT_EQ(earliest_delivery(rails), 1u);
  rails[1].in_flight = 8;
  EXPECT_EQ(earliest_delivery(rails), 0u);
}

}  // namespace
}  // namespace cluster::multipath
