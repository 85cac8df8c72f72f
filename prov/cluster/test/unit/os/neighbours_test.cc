// What the kernel knows of its neighbours, between two hosts: found once it does, left to it once a second,
// and followed when it changes its mind.
#include "os/neighbours.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/packet_link.h"
#include "os/udp_link.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

class NeighboursOf : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    std::string reason;
    hosts_ = test::TwoHosts::make(reason);
    if (!hosts_) GTEST_SKIP() << reason;
  }

  SocketAddress far() const { return hosts_->address(1, GetParam()).with_port(1000); }

  void ip_neighbour(const std::string& words) const {
    hosts_->on(0, [&] {
      const std::string what = far().ip_text() + " dev " + hosts_->interface(0).name + " " + words;
      EXPECT_EQ(std::system(("ip neigh replace " + what).c_str()), 0);
    });
  }

  std::unique_ptr<Neighbours> make() const {
    std::unique_ptr<Neighbours> made;
    hosts_->on(0, [&] { made = std::make_unique<Neighbours>(hosts_->interface(0).index); });
    return made;
  }

  std::unique_ptr<test::TwoHosts> hosts_;
};

constexpr Time kBegin = Time(100s);
constexpr HardwareAddress kFirst{std::byte{2}, {}, {}, {}, {}, std::byte{1}};
constexpr HardwareAddress kSecond{std::byte{2}, {}, {}, {}, {}, std::byte{2}};

TEST_P(NeighboursOf, NobodyIsKnownUntilTheKernelKnows) {
  const auto neighbours = make();
  Time now = kBegin;
  EXPECT_EQ(neighbours->find(far(), now), nullptr);
  EXPECT_EQ(neighbours->find(far(), now += Neighbours::kUnknown), nullptr) << "still not";
  ip_neighbour("lladdr 02:00:00:00:00:01 nud stale");
  EXPECT_EQ(neighbours->find(far(), now), nullptr) << "not asked again at once";
  EXPECT_EQ(neighbours->find(far(), now += Neighbours::kUnknown), nullptr) << "asked, and left to the kernel";
  const HardwareAddress* found = neighbours->find(far(), now);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, kFirst);
  EXPECT_NE(neighbours->find(far().with_port(7), now), nullptr) << "ports do not matter";
}

TEST_P(NeighboursOf, OnceASecondTheKernelIsAskedAgain) {
  ip_neighbour("lladdr 02:00:00:00:00:01 nud permanent");
  const auto neighbours = make();
  EXPECT_EQ(neighbours->find(far(), kBegin), nullptr);
  ip_neighbour("lladdr 02:00:00:00:00:02 nud reachable");
  const Time last = kBegin + Neighbours::kTrusted - Duration(1);
  ASSERT_NE(neighbours->find(far(), last), nullptr);
  EXPECT_EQ(*neighbours->find(far(), last), kFirst);
  EXPECT_EQ(neighbours->find(far(), kBegin + Neighbours::kTrusted), nullptr);
  ASSERT_NE(neighbours->find(far(), kBegin + Neighbours::kTrusted), nullptr);
  EXPECT_EQ(*neighbours->find(far(), kBegin + Neighbours::kTrusted), kSecond);
}

TEST_P(NeighboursOf, WhoTheKernelHasGivenUpIsUnknown) {
  ip_neighbour("lladdr 02:00:00:00:00:01 nud stale");
  const auto neighbours = make();
  neighbours->find(far(), kBegin);
  ip_neighbour("nud failed");
  const Time later = kBegin + Neighbours::kTrusted;
  neighbours->find(far(), later);
  EXPECT_EQ(neighbours->find(far(), later), nullptr);
}

TEST_P(NeighboursOf, ATableFullOfHostsForgetsNobodyBeforeItsTime) {
  ip_neighbour("lladdr 02:00:00:00:00:01 nud stale");
  const auto neighbours = make();
  neighbours->find(far(), kBegin);
  std::array<std::byte, 16> ip{std::byte{10}, std::byte{9}};
  for (int i = 0; i < 2000; ++i) {
    ip[2] = static_cast<std::byte>(i / 256);
    ip[3] = static_cast<std::byte>(i);
    EXPECT_EQ(neighbours->find(SocketAddress::v4(ip.data(), 1), kBegin), nullptr);
  }
  EXPECT_NE(neighbours->find(far(), kBegin), nullptr);
}

/// Datagrams that sockets of this namespace have sent.
long sent_by_sockets(Family family) {
  const bool v6 = family == Family::v6;
  std::ifstream table(v6 ? "/proc/thread-self/net/snmp6" : "/proc/thread-self/net/snmp");
  std::string line;
  std::string names;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string name;
    long value = -1;
    if (v6 && words >> name >> value && name == "Udp6OutDatagrams") return value;
    if (v6 || line.rfind("Udp:", 0) != 0) continue;
    if (names.empty()) {
      names = line;
      continue;
    }
    std::istringstream titles(names);
    std::string field;
    while (titles >> name && words >> field) {
      if (name == "OutDatagrams") return std::stol(field);
    }
  }
  return -1;
}

TEST_P(NeighboursOf, ALinkWithoutARingSendsRawAllTheSame) {
  test::Station left;
  test::Station right;
  std::string reason;
  for (const int host : {0, 1}) {
    test::Station& station = host == 0 ? left : right;
    hosts_->on(host, [&] {
      int error = 0;
      station.port = UdpPort::open(hosts_->address(host, GetParam()), error);
      station.link = host == 1 ? open_udp_link(station.port, 1500, station.world.environment)
                               : open_packet_link(station.port, hosts_->interface(0), {.rings = 0},
                                                  station.world.environment, reason);
    });
    ASSERT_TRUE(station.link) << reason;
  }
  const auto sent = [&] {
    long count = -1;
    hosts_->on(0, [&] { count = sent_by_sockets(GetParam()); });
    EXPECT_GE(count, 0);
    return count;
  };
  link::Path to_right;
  to_right.to = right.name();
  constexpr std::uint32_t kFrames = 20;
  // Its socket sends until the kernel knows the neighbour, and now and then afterwards.
  const bool raw = test::eventually([&] {
    const long before = sent();
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      left.send(to_right, {test::numbered(i, 64)});
      const auto frames = right.receive(1);
      EXPECT_TRUE(frames.size() == 1 && frames[0].intact && frames[0].number == i);
    }
    return sent() - before <= 2;
  });
  EXPECT_TRUE(raw);
}

INSTANTIATE_TEST_SUITE_P(Os, NeighboursOf, ::testing::Values(Family::v4, Family::v6), [](const auto& family) {
  return std::string(family.param == Family::v4 ? "v4" : "v6");
});

}  // namespace
}  // namespace cluster::os
