// The relay of a process over real sockets, and how users name relays.
#include "provider/relay_server.h"

#include <gtest/gtest.h>

#include "os/system_clock.h"
#include "os/system_random.h"
#include "os/udp_link.h"
#include "os/udp_port.h"
#include "relay/membership.h"
#include "support/fake_environment.h"
#include "support/seal_keys.h"

namespace cluster::provider {
namespace {

TEST(RelayNames, AreNamesOrAddressesPerhapsWithAPort) {
  const auto names = parse_relays("head, node-2:7000,10.0.0.1,10.0.0.2:1,fd00::1,[fd00::2]:5,[fd00::3],,");
  std::vector<std::string> texts;
  for (const RelayName& each : names) texts.push_back(each.host + " " + each.port);
  EXPECT_EQ(texts, (std::vector<std::string>{"head 9227", "node-2 7000", "10.0.0.1 9227", "10.0.0.2 1",
                                             "fd00::1 9227", "fd00::2 5", "fd00::3 9227"}));
  EXPECT_TRUE(parse_relays("").empty());
}

TEST(RelayServerTest, ServesEndpointsOfItsJob) {
  os::SystemClock clock;
  os::SystemRandom random;
  test::FakeEnvironment world;
  const std::byte loopback[] = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
  InterfaceAddress place;
  place.address = SocketAddress::v4(loopback, 0);
  place.interface.mtu = 1500;
  const relay::JobRelayKeys keys = relay::relay_keys(test::credentials({"0123456789abcdef"}).keys);
  std::string reason;
  const auto server = RelayServer::open({keys}, {&place, 1}, 0, clock, random, world.log, reason);
  ASSERT_NE(server, nullptr) << reason;
  ASSERT_EQ(server->addresses().size(), 1u);
  EXPECT_EQ(
      RelayServer::open({keys}, {&place, 1}, server->addresses()[0].port(), clock, random, world.log, reason),
      nullptr);
  EXPECT_NE(reason.find("in use"), std::string::npos) << reason;
  ASSERT_TRUE(server->run_in_background(reason)) << reason;
  int error = 0;
  const auto port = os::UdpPort::open(place.address, error);
  ASSERT_NE(port, nullptr);
  const auto link = os::open_udp_link(port, 1500, {clock, random, world.log, world.counters});
  relay::Membership membership(server->addresses()[0], keys);
  for (const Time end = clock.now() + 10s; !membership.joined() && clock.now() < end;) {
    membership.ask(clock.now(), port->name(), 1, *link, random);
    std::array<link::InFrame, 4> frames;
    for (const auto& each : std::span(frames).first(link->receive_burst(frames)))
      membership.on_frame(clock.now(), each.bytes, each.from, *link);
  }
  EXPECT_TRUE(membership.joined());
}

}  // namespace
}  // namespace cluster::provider
