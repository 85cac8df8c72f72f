#include "os/interface_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/packet_link.h"
#include "os/udp_link.h"

namespace cluster::test {
namespace {

using Family = SocketAddress::Family;

struct Case {
  const char* name;
  bool packet;
  Family family;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// The end of the cable at the first of two hosts changes while a link is open on it.
class ChangingInterface : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string reason;
    hosts_ = TwoHosts::make(reason);
    if (!hosts_) GTEST_SKIP() << reason;
    open(0, left);
    open(1, right);
    if (!left.link || !right.link) GTEST_SKIP() << left.world.log.text() << right.world.log.text();
    to_right.to = right.name();
    to_left.to = left.name();
  }

  void open(int host, Station& station) const {
    const os::Interface interface = hosts_->interface(host);
    hosts_->on(host, [&] {
      int error = 0;
      std::string reason;
      station.port = os::UdpPort::open(hosts_->address(host, GetParam().family), error);
      station.link =
          GetParam().packet
              ? os::open_packet_link(station.port, interface, {}, station.world.environment, reason)
              : os::open_udp_link(station.port, TwoHosts::kMtu, station.world.environment);
      if (!station.link) station.world.log.warn("%s", reason.c_str());
    });
  }

  /// As the components above do: keeps the path back that frames showed.
  void learn_paths() {
    left.send(to_right, {numbered(1000, 64)});
    const std::vector<Numbered> at_right = right.receive(1);
    ASSERT_EQ(at_right.size(), 1U);
    to_left = at_right[0].from;
    right.send(to_left, {numbered(1001, 64)});
    const std::vector<Numbered> at_left = left.receive(1);
    ASSERT_EQ(at_left.size(), 1U);
    to_right = at_left[0].from;
  }

  std::unique_ptr<TwoHosts> hosts_;
  Station left;
  Station right;
  link::Path to_right;
  link::Path to_left;
};

TEST_P(ChangingInterface, RenewsTheHardwareAddressOfItsInterface) {
  learn_paths();
  ASSERT_TRUE(hosts_->set(0, "address 02:00:00:00:00:77"));
  const std::array<std::byte, 6> mac = hosts_->interface(0).mac;
  EXPECT_TRUE(eventually([&] {
    left.poll();
    left.send_once(to_right, {numbered(1, 64)});
    const std::vector<Numbered> there = right.poll();
    return !there.empty() && there.back().from.mac_known == GetParam().packet &&
           (!GetParam().packet || there.back().from.mac == mac);
  }));
  const auto named = [&] { return left.world.log.text().find("02:00:00:00:00:77") != std::string::npos; };
  EXPECT_TRUE(eventually(named)) << left.world.log.text();
}

/// Frames of a host that sends nothing itself reach it again, since all others know.
TEST_P(ChangingInterface, AnnouncesItsNewHardwareAddress) {
  learn_paths();
  // From now on the kernel of the other host decides where these go.
  to_left = link::without_mac(to_left);
  right.send(to_left, {numbered(1, 64)});
  EXPECT_EQ(left.receive(1).size(), 1U);
  ASSERT_TRUE(hosts_->set(0, "address 02:00:00:00:00:77"));
  EXPECT_TRUE(hosts_->await_neighbour(1, "02:00:00:00:00:77"));
  right.send(to_left, {numbered(2, 64)});
  EXPECT_EQ(left.receive(1).size(), 1U);
}

/// Another host has the peer's address now, and has announced nothing.
TEST_P(ChangingInterface, AsksForAHardwareAddressThatIsInDoubt) {
  learn_paths();
  to_left = link::without_mac(to_left);
  right.send(to_left, {numbered(1, 64)});
  EXPECT_EQ(left.receive(1).size(), 1U);
  left.link.reset();  // and with it what announces
  ASSERT_TRUE(hosts_->set(0, "address 02:00:00:00:00:77"));
  for (to_left.doubts = 1; to_left.doubts < 64; ++to_left.doubts) {
    right.poll();
    right.send_once(to_left, {numbered(2, 64)});
    usleep(50'000);
  }
  EXPECT_TRUE(hosts_->await_neighbour(1, "02:00:00:00:00:77"));
}

TEST_P(ChangingInterface, FollowsTheMtuOfItsInterface) {
  const std::size_t at_first = left.link->frame_max();
  ASSERT_TRUE(hosts_->set(0, "mtu 1300"));
  const auto becomes = [&](std::size_t expected) {
    return eventually([&] { return left.poll(), left.link->frame_max() == expected; });
  };
  EXPECT_TRUE(becomes(at_first - (TwoHosts::kMtu - 1300))) << left.link->frame_max();
  ASSERT_TRUE(hosts_->set(0, "mtu " + std::to_string(TwoHosts::kMtu)));
  EXPECT_TRUE(becomes(at_first)) << left.link->frame_max();
  ASSERT_TRUE(hosts_->set(0, "mtu 9000"));
  usleep(100'000);
  EXPECT_TRUE(becomes(at_first)) << "memory has been laid out for those";
}

TEST(InterfaceWatch, WakesALinkWhoseAddressWasGoneWhenItCame) {
  std::string reason;
  const std::unique_ptr<TwoHosts> hosts = TwoHosts::make(reason);
  if (!hosts) GTEST_SKIP() << reason;
  World world;
  std::shared_ptr<os::InterfaceWatch> watch;
  hosts->on(0, [&] { watch = os::InterfaceWatch::of_this_namespace(world.log); });
  ASSERT_NE(watch, nullptr);
  const std::byte gone[4] = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};  // RFC 5737
  const SocketAddress address = SocketAddress::v4(gone, 7000);
  const std::unique_ptr<os::Signal> lost = os::Signal::open();
  watch->add_user(address, 0, *lost);
  ASSERT_TRUE(hosts->set(0, "mtu 1300"));
  EXPECT_TRUE(eventually([&] {
    pollfd one{lost->descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }));
  watch->remove_user(address, *lost);
}

INSTANTIATE_TEST_SUITE_P(Links, ChangingInterface,
                         ::testing::Values(Case{"packet", true, Family::v4},
                                           Case{"packet_v6", true, Family::v6},
                                           Case{"udp", false, Family::v4}, Case{"udp_v6", false, Family::v6}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace cluster::test
