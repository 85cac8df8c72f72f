#include "os/packet_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/first_hop.h"
#include "os/unlisted_peers.h"
#include "wire/frame.h"

namespace cluster::os {
namespace {

using Family = SocketAddress::Family;

class PacketLinkRefusal : public ::testing::Test {
 protected:
  PacketLinkRefusal() {
    int error = 0;
    port_ = UdpPort::open(test::loopback(Family::v4), error);
    interface_.name = "rail0";
    interface_.index = 1;
    interface_.mtu = 1500;
    interface_.up = interface_.running = interface_.has_ethernet = true;
    interface_.addresses = {test::loopback(Family::v4)};
  }
  std::string reason() {
    std::string words;
    EXPECT_FALSE(open_packet_link(port_, interface_, {}, world_.environment, words));
    return words;
  }

  test::World world_;
  std::shared_ptr<UdpPort> port_;
  Interface interface_;
};

TEST_F(PacketLinkRefusal, NamesCauseAndCure) {
  interface_.loopback = true;
  EXPECT_NE(reason().find("udp link"), std::string::npos);
  interface_.loopback = false;
  interface_.has_ethernet = false;
  EXPECT_NE(reason().find("not an Ethernet interface"), std::string::npos);
  interface_.has_ethernet = true;
  interface_.up = false;
  EXPECT_NE(reason().find("ip link set rail0 up"), std::string::npos);
  interface_.up = true;
  interface_.addresses.clear();
  EXPECT_NE(reason().find("127.0.0.1 does not belong"), std::string::npos);
}

TEST_F(PacketLinkRefusal, WithoutThePrivilege) {
  const pid_t child = fork();
  if (child == 0) {
    const bool dropped = getuid() != 0 || setresuid(65534, 65534, 65534) == 0;
    _exit(dropped && reason().find("CAP_NET_RAW") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(PacketLinkRefusal, LeavesThePortUsable) {
  interface_.index = 1 << 30;  // names no interface; with privilege the refusal comes from bind
  EXPECT_FALSE(reason().empty());
  EXPECT_EQ(port_.use_count(), 1) << "nothing was kept";
}

/// Several endpoints of one host, whose rings are a group.
class PacketLinkRings : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    hosts_ = test::TwoHosts::make(reason);
    if (!hosts_) GTEST_SKIP() << reason;
  }

  struct Endpoint {
    test::Station station;
    std::string refusal;
  };

  std::unique_ptr<Endpoint> open(std::size_t rings, Family family = Family::v4) {
    return open_on(0, {.rings = rings, .ring_groups = 1}, family);
  }
  std::unique_ptr<Endpoint> open_on(int host, const PacketSettings& settings, Family family = Family::v4) {
    auto endpoint = std::make_unique<Endpoint>();
    test::Station& station = endpoint->station;
    hosts_->on(host, [&] {
      int error = 0;
      station.port = UdpPort::open(hosts_->address(host, family), error);
      station.link = open_packet_link(station.port, hosts_->interface(host), settings,
                                      station.world.environment, endpoint->refusal);
    });
    EXPECT_EQ(station.link == nullptr, !endpoint->refusal.empty());
    return endpoint;
  }

  std::unique_ptr<test::TwoHosts> hosts_;
};

TEST_F(PacketLinkRings, AnEndpointWithoutARingLearnsWhy) {
  std::unique_ptr<Endpoint> first = open(2);
  const std::unique_ptr<Endpoint> second = open(2);
  const std::unique_ptr<Endpoint> third = open(2);
  EXPECT_EQ(first->refusal + second->refusal, "");
  EXPECT_EQ(third->refusal, hosts_->interface(0).name +
                                ": all receive rings of this user are in use (with FI_CLUSTER_LINK=packet, "
                                "the endpoint opens a receive ring of its own)");
  EXPECT_EQ(third->station.port.use_count(), 1) << "nothing was kept";
  EXPECT_EQ(open_on(0, {.rings = 2, .ring_groups = 1, .ring_outside_group = true})->refusal, "");
  first.reset();
  EXPECT_EQ(open(2)->refusal, "") << "that of the first is free";
  EXPECT_NE(open(0)->refusal, "");
}

TEST_F(PacketLinkRings, FamiliesDoNotDisturbEachOther) {
  const std::unique_ptr<Endpoint> v4 = open(1);
  const std::unique_ptr<Endpoint> v6 = open(1, Family::v6);
  EXPECT_EQ(v4->refusal + v6->refusal, "");
}

std::uint64_t overflows = 0;
bool table_is_full = false;

std::uint64_t counted_overflows(Family) { return overflows += table_is_full ? 1 : 0; }

TEST_F(PacketLinkRings, FramesGoToAllHostsIfTheTableIsFullButNotIfTheQueueIs) {
  const PacketSettings settings{.neighbour_overflows = counted_overflows};
  const std::unique_ptr<Endpoint> one = open_on(0, settings);
  const std::unique_ptr<Endpoint> other = open_on(1, settings);
  ASSERT_EQ(one->refusal + other->refusal, "");
  const link::Path path{other->station.name(), {}, false};
  one->station.send(path, {test::numbered(0, 64)});  // the kernel knows the hardware address now
  ASSERT_EQ(other->station.receive(1).size(), 1u);

  ASSERT_TRUE(hosts_->fill_queue(0));
  std::vector<test::Numbered> arrived;
  const auto send_again = [&](std::uint32_t number) {
    one->station.send_once(path, {test::numbered(number, 64)});
    std::this_thread::sleep_for(NeighbourTable::kAskAgain);
    arrived = other->station.poll();
    return !arrived.empty();
  };
  table_is_full = false;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(send_again(1)) << "the queue is full, not the table";
  table_is_full = true;
  ASSERT_TRUE(test::eventually([&] { return send_again(2); }));
  EXPECT_EQ(arrived[0].number, 2u);
  EXPECT_TRUE(arrived[0].from.mac_known) << "otherwise the answer would go to all hosts, too";
  EXPECT_EQ(arrived[0].from.mac, hosts_->interface(0).mac);

  link::Path doubtful{other->station.name(), hosts_->interface(1).mac, false};
  doubtful.doubts = 9;
  one->station.send(doubtful, {test::numbered(3, 64)});
  arrived = other->station.receive(1);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_TRUE(arrived[0].from.mac_known) << "it went to the last known hardware address";
  std::this_thread::sleep_for(UnlistedPeers::kAskAgain);
  doubtful.doubts = 16;
  doubtful.mac.back() ^= std::byte{1};  // the peer has another card now
  one->station.send(doubtful, {test::numbered(4, 64)});
  arrived = other->station.receive(1);
  ASSERT_EQ(arrived.size(), 1u) << "it went to all hosts";
  EXPECT_EQ(arrived[0].number, 4u);
}

/// Counts the UDP packets that arrive at a host, by whether they were sent to all hosts.
class UdpWatch {
 public:
  UdpWatch(const test::TwoHosts& hosts, int host) {
    hosts.on(host, [&] { socket_ = Descriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0)); });
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_IP);
    address.sll_ifindex = hosts.interface(host).index;
    EXPECT_EQ(bind(socket_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  struct Counts {
    int to_all = 0;
    int to_host = 0;
  };
  Counts take() {
    Counts counts;
    std::array<std::uint8_t, 2048> packet;
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    while (recvfrom(socket_.number(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&from),
                    &size) > 0) {
      if (packet[ETH_HLEN + 9] != IPPROTO_UDP) continue;
      counts.to_all += from.sll_pkttype == PACKET_BROADCAST ? 1 : 0;
      counts.to_host += from.sll_pkttype == PACKET_HOST ? 1 : 0;
    }
    return counts;
  }

 private:
  Descriptor socket_;
};

/// A frame that looks to a link as if a session begins with it.
std::vector<std::byte> opening_frame() {
  std::vector<std::byte> frame(100);
  wire::FrameHeader& header = wire::header_at(frame.data());
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::flow);
  header.flags = wire::frame_flag::kOpening;
  const ConstBytes piece = frame;
  wire::encode_frame(header, {&piece, 1});
  return frame;
}

TEST_F(PacketLinkRings, TheAnswerToAFrameForAllHostsGoesOnlyToItsSender) {
  const PacketSettings settings{.neighbour_overflows = counted_overflows};
  const std::unique_ptr<Endpoint> one = open_on(0, settings);
  const std::unique_ptr<Endpoint> other = open_on(1, settings);
  ASSERT_EQ(one->refusal + other->refusal, "");
  const link::Path path{other->station.name(), {}, false};
  one->station.send(path, {test::numbered(0, 64)});  // the kernels know the hardware addresses now
  ASSERT_EQ(other->station.receive(1).size(), 1u);
  ASSERT_TRUE(hosts_->fill_queue(0) && hosts_->fill_queue(1));
  table_is_full = true;
  UdpWatch at_other(*hosts_, 1), at_one(*hosts_, 0);

  const std::vector<std::byte> opening = opening_frame();
  link::InFrame arrival;
  ASSERT_TRUE(test::eventually([&] {
    link::send_frame(*one->station.link, opening, path);
    std::this_thread::sleep_for(NeighbourTable::kAskAgain);
    return other->station.link->receive_burst({&arrival, 1}) == 1;
  }));
  EXPECT_EQ(at_other.take().to_all, 1);
  EXPECT_EQ(arrival.bytes.size(), opening.size()) << "what the link has appended is removed";
  EXPECT_FALSE(arrival.from.mac_known) << "it came through the socket";
  EXPECT_EQ(arrival.from.mac, link::Path{}.mac) << "nothing has proved the address";

  const link::Path back = link::without_mac(arrival.from);
  EXPECT_TRUE(link::send_frame(*other->station.link, opening, back));
  ASSERT_TRUE(test::eventually([&] { return one->station.link->receive_burst({&arrival, 1}) == 1; }));
  const UdpWatch::Counts counts = at_one.take();
  EXPECT_EQ(counts.to_all, 0);
  EXPECT_EQ(counts.to_host, 1);

  // By the answer, this side knows the address as well.
  EXPECT_TRUE(link::send_frame(*one->station.link, opening, path));
  ASSERT_TRUE(test::eventually([&] { return other->station.link->receive_burst({&arrival, 1}) == 1; }));
  EXPECT_EQ(at_other.take().to_all, 0);
}

TEST_F(PacketLinkRings, FewFramesGoToAllHostsAtOnceAndTheNextWait) {
  const std::unique_ptr<Endpoint> one = open_on(0, {.neighbour_overflows = counted_overflows});
  const std::unique_ptr<Endpoint> other = open_on(1, {});
  ASSERT_EQ(one->refusal + other->refusal, "");
  link::Path path{other->station.name(), {}, false};
  one->station.send(path, {test::numbered(0, 64)});
  ASSERT_EQ(other->station.receive(1).size(), 1u);
  ASSERT_TRUE(hosts_->fill_queue(0));
  table_is_full = true;
  UdpWatch watch(*hosts_, 1);
  ASSERT_TRUE(test::eventually([&] {
    one->station.send_once(path, {test::numbered(1, 64)});
    std::this_thread::sleep_for(NeighbourTable::kAskAgain);
    return watch.take().to_all != 0;
  }));
  one->station.poll();

  path.doubts = 1;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::byte> opening = opening_frame();
  constexpr int kPeers = 2 * UnlistedPeers::kBurst;
  for (int i = 0; i < kPeers; ++i) {
    const std::array<std::byte, 4> ip{std::byte{10}, std::byte{77}, std::byte{0},
                                      static_cast<std::byte>(100 + i)};
    path.to = SocketAddress::v4(ip.data(), 4711);
    EXPECT_TRUE(link::send_frame(*one->station.link, opening, path));
  }
  const auto spent = std::chrono::steady_clock::now() - begin;
  int all = watch.take().to_all;
  EXPECT_GT(all, 0);
  EXPECT_LE(all, UnlistedPeers::kBurst + 1 + spent / UnlistedPeers::kInterval);
  EXPECT_TRUE(test::eventually([&] {
    one->station.poll();
    all += watch.take().to_all;
    return all == kPeers;
  }));
}

/// Returns true once a packet has arrived at the host that was sent to the hardware address of the host.
bool await_packet(UdpWatch& watch) {
  return test::eventually([&] { return watch.take().to_host == 1; });
}

TEST_F(PacketLinkRings, TheRoutesChooseTheRouterWhicheverThePeersFramesShow) {
  ASSERT_TRUE(hosts_->ip(0, "route add 10.99.0.0/16 via 10.77.0.2"));
  const std::unique_ptr<Endpoint> one = open_on(0, {});
  ASSERT_EQ(one->refusal, "");
  UdpWatch at_router(*hosts_, 1);
  const std::array<std::byte, 4> ip{std::byte{10}, std::byte{99}, std::byte{0}, std::byte{1}};
  link::Path path{SocketAddress::v4(ip.data(), 9), {std::byte{2}, std::byte{9}}, true, 0};
  const auto send = [&] { hosts_->on(0, [&] { one->station.send(path, {test::numbered(0, 64)}); }); };
  one->station.poll();
  for (int i = 0; i < 3; ++i) {  // the kernel knows the hardware address of the router after the first frame
    send();
    ASSERT_TRUE(await_packet(at_router)) << i;
    std::this_thread::sleep_for(FirstHops::kAskAgain);
  }
  path.mac = hosts_->interface(1).mac;
  send();
  EXPECT_TRUE(await_packet(at_router));
}

TEST_F(PacketLinkRings, TheShortcutIsSeenToHaveBeenTakenAndComesBeforeWhatWasSentLater) {
  for (const Family family : {Family::v4, Family::v6}) {
    const std::unique_ptr<Endpoint> one = open_on(0, {.ethertype = true}, family);
    const std::unique_ptr<Endpoint> other = open_on(1, {.ethertype = true}, family);
    ASSERT_EQ(one->refusal + other->refusal, "");
    EXPECT_TRUE(one->station.link->has_ethertype_path());
    link::Path path{other->station.name(), hosts_->interface(1).mac, true};
    constexpr std::uint32_t kFrames = 8;
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      path.ethertype = i < kFrames / 2;
      one->station.send(path, {test::numbered(i, 64 + i)});
    }
    const std::vector<test::Numbered> arrived = other->station.receive(kFrames);
    ASSERT_EQ(arrived.size(), kFrames);
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      EXPECT_TRUE(arrived[i].intact);
      EXPECT_EQ(arrived[i].number, i);
      EXPECT_EQ(arrived[i].from.ethertype, i < kFrames / 2);
      EXPECT_EQ(arrived[i].from.to, one->station.name());
    }
    EXPECT_EQ(one->station.world.counters.link_ethertype_sent, kFrames / 2);
    // Back the way they came.
    other->station.send(arrived[0].from, {test::numbered(99, 64)});
    const std::vector<test::Numbered> answer = one->station.receive(1);
    ASSERT_EQ(answer.size(), 1u);
    EXPECT_TRUE(answer[0].from.ethertype);
  }
}

TEST_F(PacketLinkRings, WholeFramesTakeTheShortcutButSuperFramesDoNot) {
  const std::unique_ptr<Endpoint> one = open_on(0, {.ethertype = true});
  const std::unique_ptr<Endpoint> other = open_on(1, {.ethertype = true});
  link::Path path{other->station.name(), hosts_->interface(1).mac, true};
  path.ethertype = true;
  one->station.send(path, {test::numbered(0, 1400), test::numbered(1, 1400), test::numbered(2, 1400)});
  EXPECT_EQ(one->station.world.counters.link_ethertype_sent, 0u);
  one->station.send(path, {test::numbered(3, 1400)});
  EXPECT_EQ(other->station.receive(4).size(), 4u);
  EXPECT_EQ(one->station.world.counters.link_ethertype_sent, 1u);
}

TEST_F(PacketLinkRings, AnEndpointWithoutTheEtherTypePathDoesNotReceiveIt) {
  const std::unique_ptr<Endpoint> one = open_on(0, {.ethertype = true});
  const std::unique_ptr<Endpoint> other = open_on(1, {.ethertype = false});
  EXPECT_FALSE(other->station.link->has_ethertype_path());
  link::Path path{other->station.name(), hosts_->interface(1).mac, true};
  path.ethertype = true;
  one->station.send(path, {test::numbered(0, 64)});
  path.ethertype = false;
  one->station.send(path, {test::numbered(1, 64)});
  const std::vector<test::Numbered> arrived = other->station.receive(1);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].number, 1u);
}

TEST_F(PacketLinkRings, AnInterfaceWithOneReceiveQueueHasAShortcut) {
  EXPECT_TRUE(open_on(0, {})->station.link->has_ethertype_path());
  Interface several = hosts_->interface(0);
  several.kind = Interface::Kind::bond;  // whose queues are those of others
  std::string reason;
  hosts_->on(0, [&] {
    int error = 0;
    test::World world;
    const auto port = UdpPort::open(hosts_->address(0, Family::v4), error);
    const auto link = open_packet_link(port, several, {}, world.environment, reason);
    ASSERT_NE(link, nullptr) << reason;
    EXPECT_FALSE(link->has_ethertype_path());
  });
}

}  // namespace
}  // namespace cluster::os
