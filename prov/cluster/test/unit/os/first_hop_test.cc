#include "os/first_hop.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "support/fake_environment.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

constexpr HardwareAddress kLeft{std::byte{2}}, kRight{std::byte{4}};
constexpr std::uint32_t kInterface = 3;
NextHop answer;
unsigned asked = 0;

NextHop told(ConstBytes, std::uint32_t interface) {
  EXPECT_EQ(interface, kInterface);
  ++asked;
  return answer;
}

class FirstHopsTest : public ::testing::Test {
 protected:
  FirstHopsTest() {
    answer = {NextHop::State::resolved, kLeft};
    asked = 0;
  }
  bool agrees(const HardwareAddress& mac) { return hops_.agrees(clock_, {peer_, mac, true, 0}, kInterface); }

  FirstHops hops_{told};
  test::FakeClock clock_;
  SocketAddress peer_ = test::loopback(Family::v4).with_port(9);
};

TEST_F(FirstHopsTest, TheRouterOfTheRoutesIsUsedAndNobodyAsksAgain) {
  EXPECT_TRUE(agrees(kLeft));
  EXPECT_TRUE(agrees(kRight)) << "it has taken the place of the first";
  EXPECT_EQ(asked, 1u);
}

TEST_F(FirstHopsTest, AnotherRouterIsNotUsedUntilTheRoutesChange) {
  EXPECT_FALSE(agrees(kRight));
  answer.hardware_address = kRight;
  clock_.advance(FirstHops::kAskSeldom - 1ns);
  EXPECT_FALSE(agrees(kRight));
  EXPECT_EQ(asked, 1u);
  clock_.advance(1ns);
  EXPECT_TRUE(agrees(kRight));
  EXPECT_EQ(asked, 2u);
}

TEST_F(FirstHopsTest, TheKernelMayLearnTheAddressLater) {
  answer = {NextHop::State::unresolved};
  EXPECT_FALSE(agrees(kLeft));
  EXPECT_FALSE(agrees(kLeft));
  EXPECT_EQ(asked, 1u);
  answer = {NextHop::State::resolved, kLeft};
  clock_.advance(FirstHops::kAskAgain);
  EXPECT_TRUE(agrees(kLeft));
}

TEST_F(FirstHopsTest, IfTheKernelNeverKnowsTheShownAddressIsUsed) {
  answer = {NextHop::State::unresolved};
  for (unsigned i = 1; i < FirstHops::kUnresolvedMax; ++i) {
    EXPECT_FALSE(agrees(kLeft)) << i;
    clock_.advance(FirstHops::kAskAgain);
  }
  EXPECT_TRUE(agrees(kLeft));
}

TEST_F(FirstHopsTest, WithoutARouteTheShownAddressIsUsedAtOnce) {
  answer = {NextHop::State::untold};
  EXPECT_TRUE(agrees(kLeft));
}

TEST_F(FirstHopsTest, AfterAChangeOfTheInterfaceTheKernelIsAskedAgain) {
  EXPECT_TRUE(agrees(kLeft));
  hops_.forget();
  EXPECT_FALSE(agrees(kRight));
}

/// Routes of both families, whose routers are the other end of the cable.
class KernelsFirstHop : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    hosts_ = test::TwoHosts::make(reason);
    if (!hosts_) GTEST_SKIP() << reason;
    ASSERT_TRUE(hosts_->ip(0, "route add 10.99.0.0/16 via 10.77.0.2"));
    ASSERT_TRUE(hosts_->ip(0, "route add 10.98.0.0/16 via inet6 fd77::2"));
    ASSERT_TRUE(hosts_->ip(0, "-6 route add fd99::/64 via fd77::2"));
  }
  std::optional<HardwareAddress> hop_to(const SocketAddress& to) {
    std::optional<HardwareAddress> hop;
    const auto interface = static_cast<std::uint32_t>(hosts_->interface(0).index);
    hosts_->on(0, [&] { hop = next_hop(to.ip(), interface).hardware_address; });
    return hop;
  }
  void make_known(Family family) {
    hosts_->on(0, [&] {
      int error = 0;
      const auto port = UdpPort::open(hosts_->address(0, family), error);
      ASSERT_NE(port, nullptr);
      const SocketAddress other = hosts_->address(1, family).with_port(9);
      sockaddr_storage to{};
      const std::size_t size = other.to(to);
      sendto(port->socket(), "", 1, 0, reinterpret_cast<const sockaddr*>(&to), static_cast<socklen_t>(size));
    });
  }
  static SocketAddress v4(const char* text) {
    in_addr ip{};
    EXPECT_EQ(inet_pton(AF_INET, text, &ip), 1);
    return SocketAddress::v4(reinterpret_cast<const std::byte*>(&ip), 9);
  }
  static SocketAddress v6(const char* text) {
    in6_addr ip{};
    EXPECT_EQ(inet_pton(AF_INET6, text, &ip), 1);
    return SocketAddress::v6(reinterpret_cast<const std::byte*>(&ip), 9);
  }

  std::unique_ptr<test::TwoHosts> hosts_;
};

TEST_F(KernelsFirstHop, IsTheRouterOrThePeerItself) {
  EXPECT_EQ(hop_to(v4("10.99.0.1")), std::nullopt) << "nobody has sent to the router yet";
  EXPECT_EQ(hop_to(v4("10.55.0.1")), std::nullopt) << "no route";
  make_known(Family::v4);
  make_known(Family::v6);
  const HardwareAddress router = hosts_->interface(1).mac;
  EXPECT_TRUE(test::eventually([&] { return hop_to(v4("10.99.0.1")) == router; }));
  EXPECT_EQ(hop_to(v4("10.77.0.2")), router);
  EXPECT_TRUE(test::eventually([&] { return hop_to(v6("fd99::1")) == router; }));
  EXPECT_EQ(hop_to(v4("10.98.0.1")), router) << "an IPv6 router of an IPv4 route";
}

}  // namespace
}  // namespace cluster::os
