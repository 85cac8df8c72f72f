// Which interfaces join the one that carries the address of an endpoint, as FI_CLUSTER_RAILS says.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "multipath/interface_choice.h"

namespace cluster::multipath {
namespace {

using Names = std::vector<std::string>;

SocketAddress v4(const std::string& ip) {
  std::byte bytes[4];
  EXPECT_EQ(inet_pton(AF_INET, ip.c_str(), bytes), 1);
  return SocketAddress::v4(bytes, 0);
}

SocketAddress v6(const std::string& ip) {
  std::byte bytes[16];
  EXPECT_EQ(inet_pton(AF_INET6, ip.c_str(), bytes), 1);
  return SocketAddress::v6(bytes, 0);
}

/// An interface equal to all others of the test except for what the test changes.
link::InterfaceAddress entry(int number, const SocketAddress& address) {
  link::InterfaceAddress made;
  made.interface.name = "eth" + std::to_string(number);
  made.interface.index = number + 1;
  made.interface.mtu = 9000;
  made.interface.speed_mbit = 25'000;
  made.interface.up = made.interface.running = true;
  made.address = address;
  return made;
}

struct RailChoice : testing::Test {
  RailChoice() {
    for (int i = 0; i < 4; ++i) addresses.push_back(entry(i, v4("10.0." + std::to_string(i) + ".1")));
  }
  Names chosen(const std::string& rule) {
    unknown.clear();
    Names names;
    for (const link::InterfaceAddress* rail : choose_rails(addresses, addresses.front(), rule, unknown)) {
      names.push_back(rail->interface.name);
    }
    return names;
  }
  link::Interface& eth(std::size_t number) { return addresses[number].interface; }

  std::vector<link::InterfaceAddress> addresses;
  Names unknown;
};

TEST_F(RailChoice, AllEqualInterfacesJoinAndThePrimaryOnlyOnce) {
  EXPECT_EQ(chosen("auto"), (Names{"eth1", "eth2", "eth3"}));
  EXPECT_EQ(chosen(""), (Names{"eth1", "eth2", "eth3"}));
  EXPECT_EQ(chosen("none"), Names{});
}

TEST_F(RailChoice, ADifferentInterfaceStaysOut) {
  eth(1).speed_mbit = 1'000;
  eth(2).mtu = 1'500;
  eth(3).kind = link::Interface::Kind::tunnel;
  EXPECT_EQ(chosen("auto"), Names{});
}

TEST_F(RailChoice, AnInterfaceWithoutCarrierOrWithoutAnOutwardPortStaysOut) {
  eth(1).running = false;
  for (const std::size_t bridge : {0u, 2u, 3u}) eth(bridge).kind = link::Interface::Kind::bridge;
  eth(0).hardware_port = eth(2).hardware_port = true;  // the last joins containers of this node
  EXPECT_EQ(chosen("auto"), Names{"eth2"});
}

TEST_F(RailChoice, NamesAreTakenInTheirOrderEqualOrNot) {
  eth(3).speed_mbit = 1'000;
  EXPECT_EQ(chosen("eth3,eth1"), (Names{"eth3", "eth1"}));
  EXPECT_EQ(chosen(" eth2 , eth2,eth0"), Names{"eth2"}) << "each once";
  EXPECT_TRUE(unknown.empty());
}

TEST_F(RailChoice, NamesWithACaretAreExcluded) {
  EXPECT_EQ(chosen("^eth2"), (Names{"eth1", "eth3"}));
  EXPECT_EQ(chosen("^eth2,^eth3"), Names{"eth1"});
}

TEST_F(RailChoice, AnUnknownNameIsReportedAndTheOthersAreTaken) {
  EXPECT_EQ(chosen("eth9,eth1"), Names{"eth1"});
  EXPECT_EQ(unknown, Names{"eth9"});
}

TEST_F(RailChoice, FamiliesDoNotMix) {
  addresses[1].address = v6("fd00::1");
  addresses.push_back(entry(2, v6("fd00::2")));
  EXPECT_EQ(chosen("auto"), (Names{"eth2", "eth3"}));
  EXPECT_EQ(chosen("eth1"), Names{});
  EXPECT_EQ(unknown, Names{"eth1"}) << "it has no fitting address";
}

TEST_F(RailChoice, ALinkLocalAddressIsNotAdvertised) {
  for (int i = 0; i < 4; ++i) {
    addresses[static_cast<std::size_t>(i)].address = v6(i == 0 ? "fd00::1" : "fe80::" + std::to_string(i));
  }
  EXPECT_EQ(chosen("auto"), Names{});
  EXPECT_EQ(chosen("eth1"), Names{});
  addresses.push_back(entry(2, v6("fd00::2")));
  EXPECT_EQ(chosen("auto"), Names{"eth2"});
}

TEST_F(RailChoice, AnInterfaceWithTwoAddressesIsOneRail) {
  addresses.push_back(entry(1, v4("192.168.0.1")));
  EXPECT_EQ(chosen("auto"), (Names{"eth1", "eth2", "eth3"}));
}

TEST_F(RailChoice, ThereIsALimit) {
  for (int i = 4; i < 16; ++i) addresses.push_back(entry(i, v4("10.0." + std::to_string(i) + ".1")));
  EXPECT_EQ(chosen("auto"), (Names{"eth1", "eth2", "eth3", "eth4", "eth5", "eth6", "eth7"}));
  EXPECT_EQ(chosen("eth15,eth14,eth13,eth12,eth11,eth10,eth9,eth8").size(), 7u);
}

}  // namespace
}  // namespace cluster::multipath
