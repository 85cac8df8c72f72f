#include <gtest/gtest.h>

#include "multipath/interface_choice.h"

namespace cluster::multipath {
namespace {

using link::Interface;

SocketAddress v4(int last) {
  const std::byte ip[4] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 0);
}

SocketAddress v6(int first, int last) {
  std::byte ip[16] = {static_cast<std::byte>(first), std::byte{0x80}};
  ip[15] = static_cast<std::byte>(last);
  return SocketAddress::v6(ip, 0);
}

Interface make(const char* name, Interface::Kind kind, long speed, std::vector<SocketAddress> addresses) {
  Interface interface;
  interface.name = name;
  interface.kind = kind;
  interface.speed_mbit = speed;
  interface.up = interface.running = true;
  interface.loopback = kind == Interface::Kind::loopback;
  interface.addresses = std::move(addresses);
  return interface;
}

std::string order(const std::vector<Interface>& interfaces) {
  std::string names;
  for (const RankedInterface& ranked : rank_interfaces(interfaces)) {
    names += (ranked.usable ? "" : "!") + ranked.interface->name + " ";
  }
  return names;
}

TEST(InterfaceRank, HardwareBeforeWhatContainersBuild) {
  using Kind = Interface::Kind;
  EXPECT_EQ(order({make("lo", Kind::loopback, -1, {v4(1)}), make("docker0", Kind::bridge, 10000, {v4(2)}),
                   make("tun0", Kind::tunnel, 10, {v4(3)}), make("wlan0", Kind::wireless, -1, {v4(4)}),
                   make("veth1", Kind::veth, 10000, {v4(5)}), make("eth0", Kind::physical, 1000, {v4(6)})}),
            "eth0 veth1 docker0 wlan0 tun0 lo ");
}

TEST(InterfaceRank, ABridgeOverAnAdapterStandsForIt) {
  using Kind = Interface::Kind;
  std::vector<Interface> interfaces = {
      make("dummy0", Kind::dummy, -1, {v4(1)}),       make("docker0", Kind::bridge, 10000, {v4(2)}),
      make("ifb0", Kind::virtual_other, -1, {v4(3)}), make("br0", Kind::bridge, 1000, {v4(4)}),
      make("tun0", Kind::tunnel, -1, {v4(5)}),        make("eno1", Kind::physical, 1000, {})};
  interfaces[3].hardware_port = true;
  EXPECT_EQ(order(interfaces), "br0 ifb0 docker0 tun0 dummy0 !eno1 ");
  EXPECT_NE(rank_interfaces(interfaces)[0].reason.find("over an adapter"), std::string::npos);
}

TEST(InterfaceRank, AnAddressThatItGaveItselfComesBehindThoseGiven) {
  const std::byte ip[4] = {std::byte{169}, std::byte{254}, std::byte{1}, std::byte{1}};
  const std::vector<Interface> interfaces = {
      make("usb0", Interface::Kind::physical, 1000, {SocketAddress::v4(ip, 0)}),
      make("veth0", Interface::Kind::veth, 10000, {v4(2)}),
      make("lo", Interface::Kind::loopback, -1, {v4(3)})};
  EXPECT_EQ(order(interfaces), "veth0 usb0 lo ");
  EXPECT_NE(rank_interfaces(interfaces)[1].reason.find("self-assigned"), std::string::npos);
}

TEST(InterfaceRank, SpeedDecidesAmongEquals) {
  using Kind = Interface::Kind;
  EXPECT_EQ(order({make("a", Kind::physical, 1000, {v4(1)}), make("b", Kind::physical, -1, {v4(2)}),
                   make("c", Kind::physical, 25000, {v4(3)}), make("d", Kind::physical, 25000, {v4(4)})}),
            "c d a b ");
}

TEST(InterfaceRank, ACarrierOutweighsSpeed) {
  std::vector<Interface> interfaces = {make("fast", Interface::Kind::physical, 100000, {v4(1)}),
                                       make("slow", Interface::Kind::physical, 100, {v4(2)}),
                                       make("lo", Interface::Kind::loopback, -1, {v4(3)})};
  interfaces[0].running = false;
  EXPECT_EQ(order(interfaces), "slow fast lo ");
  EXPECT_NE(rank_interfaces(interfaces)[1].reason.find("no carrier"), std::string::npos);
}

TEST(InterfaceRank, UnusableOnesSayWhy) {
  std::vector<Interface> interfaces = {make("down", Interface::Kind::physical, 1000, {v4(1)}),
                                       make("bare", Interface::Kind::physical, 1000, {}),
                                       make("local", Interface::Kind::physical, 1000, {v6(0xfe, 1)}),
                                       make("lo", Interface::Kind::loopback, -1, {v4(2)})};
  interfaces[0].up = false;
  EXPECT_EQ(order(interfaces), "lo !down !bare !local ");
  const std::vector<RankedInterface> ranked = rank_interfaces(interfaces);
  EXPECT_NE(ranked[1].reason.find("down"), std::string::npos);
  EXPECT_NE(ranked[2].reason.find("no address"), std::string::npos);
  EXPECT_NE(ranked[3].reason.find("link-local"), std::string::npos);
  EXPECT_TRUE(ranked[1].address.empty());
}

TEST(InterfaceRank, OneEntryPerFamily) {
  const std::vector<Interface> interfaces = {
      make("a", Interface::Kind::physical, 1000, {v4(1), v4(2), v6(0xfd, 1), v6(0xfe, 2)}),
      make("b", Interface::Kind::physical, 1000, {v6(0xfd, 3)})};
  const std::vector<RankedInterface> ranked = rank_interfaces(interfaces);
  ASSERT_EQ(ranked.size(), 3U);
  EXPECT_EQ(ranked[0].address, v4(1));
  EXPECT_EQ(ranked[1].address, v6(0xfd, 1));
  EXPECT_EQ(ranked[2].address, v6(0xfd, 3));
}

TEST(InterfaceRank, NothingFromNothing) { EXPECT_TRUE(rank_interfaces({}).empty()); }

}  // namespace
}  // namespace cluster::multipath
