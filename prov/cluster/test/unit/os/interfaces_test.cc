#include "os/interfaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "conformance/two_hosts.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

TEST(Interfaces, FindsLoopback) {
  const std::vector<Interface> interfaces = list_interfaces();
  const auto lo =
      std::find_if(interfaces.begin(), interfaces.end(), [](const auto& i) { return i.loopback; });
  ASSERT_NE(lo, interfaces.end());
  EXPECT_TRUE(lo->up);
  EXPECT_FALSE(lo->has_ethernet);
  EXPECT_EQ(lo->kind, Interface::Kind::loopback);
  EXPECT_GT(lo->index, 0);
  EXPECT_GE(lo->mtu, 1500U);
  EXPECT_EQ(std::count(lo->addresses.begin(), lo->addresses.end(), test::loopback(Family::v4)), 1);
}

TEST(Interfaces, DescribesAVirtualEthernetPair) {
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (!hosts) GTEST_SKIP() << reason;
  const Interface cable = hosts->interface(0);
  EXPECT_TRUE(cable.up && cable.running && cable.has_ethernet);
  EXPECT_FALSE(cable.loopback);
  EXPECT_EQ(cable.kind, Interface::Kind::veth);
  EXPECT_EQ(cable.mtu, test::TwoHosts::kMtu);
  EXPECT_EQ(cable.speed_mbit, 10000);
  EXPECT_NE(cable.mac, (std::array<std::byte, 6>{}));
  EXPECT_NE(cable.mac, hosts->interface(1).mac);
  ASSERT_GE(cable.addresses.size(), 2U);
  EXPECT_EQ(cable.addresses[0], hosts->address(0, Family::v4));
  EXPECT_EQ(cable.addresses[1], hosts->address(0, Family::v6)) << "link-local comes last";
}

TEST(Interfaces, SaysWhenSomethingHasChanged) {
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (!hosts) GTEST_SKIP() << reason;
  std::optional<InterfaceChanges> changes;
  hosts->on(0, [&] { changes.emplace(); });
  ASSERT_TRUE(*changes);
  changes->any();
  EXPECT_FALSE(changes->any());
  const auto before = changes->look();
  ASSERT_TRUE(before);
  EXPECT_EQ(before, changes->look());
  ASSERT_TRUE(hosts->set(0, "mtu 1300"));
  EXPECT_TRUE(changes->any());
  const auto after = changes->look();
  ASSERT_TRUE(after);
  EXPECT_NE(before, after) << "whatever namespace the caller is in";
  EXPECT_TRUE(std::ranges::any_of(*after, [](const Interface& each) { return each.mtu == 1300; }));
}

TEST(Interfaces, LocalRoutesAreFound) {
  const auto route = local_route(test::loopback(Family::v4));
  ASSERT_TRUE(route);
  EXPECT_GT(route->interface, 0);
  EXPECT_TRUE(local_route(test::loopback(Family::v6)));
  const std::byte own_name[4] = {std::byte{127}, std::byte{0}, std::byte{1}, std::byte{1}};
  const auto covered = local_route(SocketAddress::v4(own_name, 9));
  ASSERT_TRUE(covered);
  EXPECT_EQ(covered->interface, route->interface);
  EXPECT_EQ(covered->prefix_bits, 8U);
  const std::byte elsewhere[4] = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
  EXPECT_FALSE(local_route(SocketAddress::v4(elsewhere, 0)));
  EXPECT_FALSE(local_route({}));
}

TEST(Interfaces, SourceIsWhatTheKernelWouldUse) {
  EXPECT_EQ(source_for(test::loopback(Family::v4).with_port(9)), test::loopback(Family::v4));
  EXPECT_EQ(source_for(test::loopback(Family::v4)), test::loopback(Family::v4)) << "without a port too";
  EXPECT_FALSE(source_for({}));
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (!hosts) GTEST_SKIP() << reason;
  hosts->on(0, [&] {
    for (const Family family : {Family::v4, Family::v6}) {
      EXPECT_EQ(source_for(hosts->address(1, family)), hosts->address(0, family));
    }
    const std::byte elsewhere[4] = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    EXPECT_FALSE(source_for(SocketAddress::v4(elsewhere, 1))) << "no route";
  });
}

}  // namespace
}  // namespace cluster::os
