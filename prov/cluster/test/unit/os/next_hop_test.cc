#include "os/next_hop.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"

namespace cluster::os {
namespace {

bool known(const SocketAddress& address, const Interface& interface) {
  return hardware_address_known(address.ip(), static_cast<std::uint32_t>(interface.index));
}

TEST(NextHop, ThisHostIsKnown) {
  for (const Interface& each : list_interfaces()) {
    if (!each.loopback) continue;
    EXPECT_TRUE(known(test::loopback(SocketAddress::Family::v4), each));
    EXPECT_TRUE(known(test::loopback(SocketAddress::Family::v6), each));
  }
}

TEST(NextHop, ANeighbourIsKnownOnceItHasAnswered) {
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (hosts == nullptr) GTEST_SKIP() << reason;
  for (const auto family : {SocketAddress::Family::v4, SocketAddress::Family::v6}) {
    hosts->on(0, [&] {
      const SocketAddress there = hosts->address(1, family);
      EXPECT_FALSE(known(there, hosts->interface(0)));
      EXPECT_TRUE(test::eventually([&] { return known(there, hosts->interface(0)); }));
    });
  }
}

TEST(NextHop, NobodyWaitsForANeighbourThatDoesNotAnswer) {
  std::string reason;
  const auto hosts = test::TwoHosts::make(reason);
  if (hosts == nullptr) GTEST_SKIP() << reason;
  hosts->on(0, [&] {
    // Another host of the same subnet, which does not exist.
    std::array<std::byte, 4> ip;
    std::memcpy(ip.data(), hosts->address(1, SocketAddress::Family::v4).ip().data(), ip.size());
    ip[3] = std::byte{77};
    const SocketAddress nobody = SocketAddress::v4(ip.data(), 0);
    const Interface interface = hosts->interface(0);
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(known(nobody, interface));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
    test::eventually([&] { return known(nobody, interface); });
    EXPECT_FALSE(known(nobody, interface)) << "the kernel has given up";
  });
}

}  // namespace
}  // namespace cluster::os
