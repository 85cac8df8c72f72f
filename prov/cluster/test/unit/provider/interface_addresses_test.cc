// The choice of the interface: the source address, the option, the names in the hints, the route.
#include "provider/interface_addresses.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "provider/addressing.h"

namespace cluster::provider {
namespace {

using Family = SocketAddress::Family;

SocketAddress v4(const char* ip) {
  std::byte bytes[4];
  EXPECT_EQ(inet_pton(AF_INET, ip, bytes), 1);
  return SocketAddress::v4(bytes, 0);
}

SocketAddress v6(const char* ip) {
  std::byte bytes[16];
  EXPECT_EQ(inet_pton(AF_INET6, ip, bytes), 1);
  return SocketAddress::v6(bytes, 0);
}

InterfaceAddress place(const char* interface, const SocketAddress& address, const char* network) {
  InterfaceAddress result;
  result.interface.name = interface;
  result.address = address;
  result.network = network;
  return result;
}

class ChooseAddress : public ::testing::Test {
 protected:
  const InterfaceAddress* best() const { return choose_address(places, filter); }

  const std::vector<InterfaceAddress> places = {
      place("eth0", v4("10.88.0.1"), "10.88.0.0/24"),     place("eth0", v6("fd00::1"), "fd00::/64"),
      place("eth1", v4("10.88.1.1"), "10.88.1.0/24"),     place("lo", v4("127.0.0.1"), "127.0.0.0/8"),
      place("eth1", v4("192.168.7.7"), "192.168.7.0/24"),
  };
  AddressFilter filter;
};

TEST_F(ChooseAddress, TheFirstWithoutAFilter) { EXPECT_EQ(best(), &places[0]); }

TEST_F(ChooseAddress, TheOptionSelectsAnInterface) {
  filter.interface = "eth1";
  EXPECT_EQ(best(), &places[2]);
  filter.interface = "eth9";
  EXPECT_EQ(best(), nullptr);
}

TEST_F(ChooseAddress, ASourceAddressPrecedesTheOption) {
  filter.interface = "eth1";
  filter.source = v4("127.0.0.1").with_port(5);
  EXPECT_EQ(best(), &places[3]);
  filter.source = v4("192.168.7.7");
  EXPECT_EQ(best(), &places[4]);
  filter.source = v4("10.9.9.9");
  EXPECT_EQ(best(), nullptr);
}

TEST_F(ChooseAddress, AWildcardMatchesAnyAddress) {
  filter.source = v4("0.0.0.0").with_port(9228);
  filter.family = Family::v4;
  EXPECT_EQ(best(), &places[0]);
}

TEST_F(ChooseAddress, FamilyDomainAndFabric) {
  filter.family = Family::v6;
  EXPECT_EQ(best(), &places[1]);
  filter.domain = "eth1";
  EXPECT_EQ(best(), nullptr);
  filter.family = Family::none;
  EXPECT_EQ(best(), &places[2]);
  filter.domain = "ETH1";
  filter.fabric = "192.168.7.0/24";
  EXPECT_EQ(best(), &places[4]);
}

TEST_F(ChooseAddress, TheRouteIsPreferredAmongMatches) {
  filter.routed = v4("10.88.1.1");
  EXPECT_EQ(best(), &places[2]);
  filter.domain = "eth0";
  EXPECT_EQ(best(), &places[0]);
  filter = {};
  filter.interface = "eth0";
  filter.routed = v4("10.88.1.1");
  EXPECT_EQ(best(), &places[0]);
}

TEST(NetworkName, MasksTheHost) {
  EXPECT_EQ(network_name(v4("10.88.77.1"), 24), "10.88.77.0/24");
  EXPECT_EQ(network_name(v4("10.88.77.255"), 20), "10.88.64.0/20");
  EXPECT_EQ(network_name(v4("10.88.77.1"), 32), "10.88.77.1/32");
  EXPECT_EQ(network_name(v4("10.88.77.1"), 0), "0.0.0.0/0");
  EXPECT_EQ(network_name(v6("fd00:1:2:3:4::5"), 64), "fd00:1:2:3::/64");
}

TEST(ListInterfaceAddresses, ContainsLoopback) {
  int error = -1;
  for (const InterfaceAddress& found : list_interface_addresses({}, error)) {
    if (found.interface.name == "lo" && found.address == v4("127.0.0.1")) {
      EXPECT_EQ(found.network, "127.0.0.0/8");
      return;
    }
  }
  FAIL() << "no lo with 127.0.0.1";
}

TEST(ListInterfaceAddresses, ContainsWhatIsLocalByARouteIfItIsWanted) {
  int error = -1;
  AddressFilter filter;
  filter.source = v4("127.0.1.1").with_port(7);
  const auto places = list_interface_addresses(filter.source, error);
  EXPECT_EQ(error, 0);
  const InterfaceAddress* const found = choose_address(places, filter);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->interface.name, "lo");
  EXPECT_EQ(found->address, v4("127.0.1.1"));
  EXPECT_EQ(found->network, "127.0.0.0/8");
  filter.source = v4("192.0.2.1");
  EXPECT_EQ(choose_address(list_interface_addresses(filter.source, error), filter), nullptr);
}

TEST(NoAddressReason, NamesWhatHasRunOut) {
  EXPECT_EQ(no_address_reason({}, {}, 0),
            "no network interface is up and has an address (see \"ip address\")");
  EXPECT_EQ(no_address_reason({}, {}, EMFILE),
            "the kernel does not list the network interfaces: Too many open files: raise the hard limit of "
            "open files (\"ulimit -Hn\")");
}

TEST(AddressText, Forms) {
  const auto four = parse_address_text("fi_sockaddr_in://10.0.0.1:9228");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->family, Family::v4);
  EXPECT_EQ(four->host, "10.0.0.1");
  EXPECT_EQ(four->port, "9228");
  const auto six = parse_address_text("fi_sockaddr_in6://[fd00::1]:1");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->family, Family::v6);
  EXPECT_EQ(six->host, "fd00::1");
  EXPECT_EQ(six->port, "1");
  const auto wildcard = parse_address_text("fi_sockaddr://:7");
  ASSERT_TRUE(wildcard);
  EXPECT_EQ(wildcard->host, "");
  EXPECT_EQ(wildcard->port, "7");
  for (const char* text :
       {"10.0.0.1", "", "fi_addr_xyz://1", "fi_sockaddr_in6://[fd00::1", "fi_sockaddr_in6://[::1]9"}) {
    EXPECT_FALSE(parse_address_text(text)) << text;
  }
}

}  // namespace
}  // namespace cluster::provider
