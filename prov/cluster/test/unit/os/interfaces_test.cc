#include "os/interfaces.h"

#include <gtest/gtest.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
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

/// A message of the kernel about a link.
class LinkMessage {
 public:
  explicit LinkMessage(unsigned char family = AF_UNSPEC) {
    ifinfomsg head{};
    head.ifi_family = family;
    head.ifi_type = ARPHRD_ETHER;
    head.ifi_index = 3;
    head.ifi_flags = IFF_UP;
    append(&head, sizeof head);
  }
  LinkMessage& with(unsigned short type, const void* value, std::size_t size) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(size)), type};
    append(&head, sizeof head);
    append(value, size);
    bytes_.resize(RTA_ALIGN(bytes_.size()));
    return *this;
  }
  LinkMessage& whole(unsigned mtu, unsigned char last_of_mac) {
    const unsigned char mac[6] = {2, 0, 0, 0, 0, last_of_mac};
    return with(IFLA_IFNAME, "eth7", 5).with(IFLA_MTU, &mtu, sizeof mtu).with(IFLA_ADDRESS, mac, sizeof mac);
  }
  ConstBytes bytes() const { return bytes_; }

 private:
  void append(const void* from, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

TEST(Interfaces, TakesInWhatChanges) {
  std::vector<Interface> interfaces;
  EXPECT_TRUE(note_change(RTM_NEWLINK, LinkMessage().whole(1500, 1).bytes(), interfaces));
  ASSERT_EQ(interfaces.size(), 1U);
  interfaces[0].addresses = {test::loopback(Family::v4)};
  interfaces[0].prefix_bits = {8};
  interfaces[0].kind = Interface::Kind::wireless;
  EXPECT_FALSE(note_change(RTM_NEWLINK, LinkMessage().whole(1500, 1).bytes(), interfaces)) << "as it was";
  EXPECT_TRUE(note_change(RTM_NEWLINK, LinkMessage().whole(9000, 2).bytes(), interfaces));
  EXPECT_EQ(interfaces[0].mtu, 9000U);
  EXPECT_EQ(interfaces[0].mac[5], std::byte{2});
  EXPECT_EQ(interfaces[0].addresses.size(), 1U) << "of which this message says nothing";
  EXPECT_EQ(interfaces[0].kind, Interface::Kind::wireless);
  const LinkMessage partial = LinkMessage().with(IFLA_IFNAME, "eth7", 5);
  EXPECT_FALSE(note_change(RTM_NEWLINK, partial.bytes(), interfaces)) << "that of a radio, about its cell";
  const LinkMessage of_bridge = LinkMessage(AF_BRIDGE).whole(9000, 2);
  EXPECT_FALSE(note_change(RTM_DELLINK, of_bridge.bytes(), interfaces))
      << "it left its bridge and is still there";
  EXPECT_TRUE(note_change(RTM_DELLINK, LinkMessage().whole(9000, 2).bytes(), interfaces));
  EXPECT_TRUE(interfaces.empty());
  EXPECT_FALSE(note_change(RTM_NEWLINK, {}, interfaces));
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
