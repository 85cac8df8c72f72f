// Endpoints of datagrams between fake links: a datagram arrives whole or not at all, and datagrams of unknown
// sources leave nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "shm/local_listener.h"
#include "support/completions.h"
#include "support/fake_network.h"
#include "wire/control.h"

namespace cluster::engine {
namespace {

using protocol::Completion;

SocketAddress host(std::uint8_t last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{last}};
  return SocketAddress::v4(ip, 9228);
}
const SocketAddress kNear = host(1);
const SocketAddress kFar = host(2);
const SocketAddress kUnmetSource = host(3);
constexpr std::size_t kFrameMax = 1472;
constexpr std::size_t kMessageMax = kFrameMax - wire::kDatagramHeaderMax;

/// An endpoint that knows one peer, under handle 0.
struct DatagramNode {
  DatagramNode(test::FakeNetwork& network, const SocketAddress& name, const SocketAddress& peer,
               EndpointType type = EndpointType::dgram)
      : clock(network.clock()), engine(parts(network, name, type)) {
    book.insert(peer);
    protocol::EndpointBindings bindings{.tx_queue = &sent, .rx_queue = &received};
    bindings.want_source = true;
    engine.attach(book, bindings);
  }
  EngineParts parts(test::FakeNetwork& network, const SocketAddress& name, EndpointType type) {
    EngineSettings settings;
    settings.linger = 0s;
    return {.environment = {clock, random, log, counters},
            .settings = settings,
            .name = name,
            .epoch = 1000,
            .link = std::make_unique<test::FakeLink>(network, name, kFrameMax),
            .local_listener = nullptr,
            .resources = nullptr,
            .type = type};
  }
  Status send(ConstBytes bytes, std::uint64_t data = 0) {
    return engine.send({.slices = {&bytes, 1}, .length = bytes.size(), .data = data, .has_data = data != 0});
  }
  Status receive(Bytes bytes, std::uint64_t from = protocol::kAddrUnspec) {
    return engine.receive({.slices = {&bytes, 1}, .from = from, .context = this});
  }

  test::FakeClock& clock;
  test::FakeRandom random;
  test::FakeLog log;
  Counters counters;
  AddressTable book;
  protocol::CompletionQueue sent;
  protocol::CompletionQueue received;
  Engine engine;
};

class DatagramEndpointTest : public ::testing::Test {
 protected:
  template <typename... Nodes>
  void pass(Nodes&... nodes) {
    for (int i = 0; i < 20; ++i) {
      clock.advance(5us);
      (nodes.engine.poll(), ...);
    }
  }
  test::FakeClock clock;
  test::FakeNetwork network{clock, 1};
  std::vector<std::byte> target = std::vector<std::byte>(2000);
};

TEST_F(DatagramEndpointTest, AMessageIsAFrameOfItsOwn) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear);
  std::vector<std::byte> message(kMessageMax, std::byte{7});
  ASSERT_EQ(b.receive(target), Status::ok);
  ASSERT_EQ(a.send(message, 0xDA7A), Status::ok);
  EXPECT_EQ(network.carried, 1u);
  EXPECT_EQ(test::take(a.sent).size(), 1u) << "complete once it has left";
  pass(a, b);
  const auto got = test::take(b.received);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].length, message.size());
  EXPECT_EQ(got[0].data, 0xDA7Au);
  EXPECT_EQ(got[0].source, 0u);
  EXPECT_TRUE(std::equal(message.begin(), message.end(), target.begin()));
  EXPECT_EQ(network.carried, 1u) << "nothing is said in return";
  message.push_back(std::byte{8});
  EXPECT_EQ(a.send(message), Status::too_big);
}

TEST_F(DatagramEndpointTest, ALostDatagramLeavesNothingPending) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear);
  ASSERT_EQ(b.receive(target), Status::ok);
  network.conditions.blackout = true;
  ASSERT_EQ(a.send(ConstBytes(target).first(8)), Status::ok);
  pass(a, b);
  EXPECT_EQ(test::take(a.sent).size(), 1u);
  EXPECT_TRUE(b.received.empty());
  EXPECT_TRUE(a.engine.quiescent());
  EXPECT_EQ(network.carried, 1u);
}

TEST_F(DatagramEndpointTest, AShortReceiveIsTruncated) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear);
  ASSERT_EQ(b.receive(Bytes(target).first(5)), Status::ok);
  ASSERT_EQ(a.send(ConstBytes(target).first(8)), Status::ok);
  pass(a, b);
  const auto got = test::take(b.received);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, Status::truncated);
  EXPECT_EQ(got[0].length, 5u);
  EXPECT_EQ(got[0].lost, 3u);
}

TEST_F(DatagramEndpointTest, SomeWaitForTheirReceivesAndTheRestIsDroppedAndCounted) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear);
  constexpr std::size_t kSent = 1000;
  for (std::size_t i = 0; i < kSent; ++i) {
    std::byte message{static_cast<unsigned char>(i)};
    ASSERT_EQ(a.send({&message, 1}), Status::ok);
    pass(b);
  }
  const std::size_t kept = kSent - b.counters.datagrams_dropped;
  EXPECT_GT(kept, 100u);
  EXPECT_LT(kept, kSent);
  for (std::size_t i = 0; i < kept; ++i) {
    ASSERT_EQ(b.receive(Bytes(target).first(1)), Status::ok);
    ASSERT_EQ(target[0], std::byte{static_cast<unsigned char>(i)}) << "oldest first";
  }
  EXPECT_EQ(test::take(b.received).size(), kept);
  ASSERT_EQ(b.receive(Bytes(target).first(1)), Status::ok);
  EXPECT_TRUE(b.received.empty());
}

TEST_F(DatagramEndpointTest, DatagramsOfUnknownSourcesHaveNoHandle) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode unknown(network, kUnmetSource, kNear);
  ASSERT_EQ(a.receive(target, 0), Status::ok);
  ASSERT_EQ(unknown.send(ConstBytes(target).first(8)), Status::ok);
  pass(a);
  EXPECT_TRUE(a.received.empty()) << "that receive was for b alone";
  ASSERT_EQ(a.receive(target), Status::ok);
  const auto got = test::take(a.received);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].source, protocol::kAddrNotAvail);
}

TEST_F(DatagramEndpointTest, AReceiveFromOnePeerWaitsWithoutACall) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear);
  ASSERT_EQ(a.receive(target, 0), Status::ok);
  for (int i = 0; i < 200; ++i) {
    clock.advance(50ms);
    a.engine.poll();
    b.engine.poll();
  }
  EXPECT_TRUE(a.received.empty()) << "10 s without a datagram are no error";
  EXPECT_EQ(network.carried, 0u);
  ASSERT_EQ(b.send(ConstBytes(target).first(8)), Status::ok);
  pass(a, b);
  EXPECT_EQ(test::take(a.received).size(), 1u);
}

TEST_F(DatagramEndpointTest, NoPathIsLearntFromDatagrams) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear);
  network.conditions.macs = true;
  ASSERT_EQ(b.send(ConstBytes(target).first(8)), Status::ok);
  pass(a);
  std::size_t raw = 0;
  network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress&) {
    raw += packet.raw ? 1 : 0;
    return false;
  };
  ASSERT_EQ(a.send(ConstBytes(target).first(8)), Status::ok);
  EXPECT_EQ(raw, 0u);
}

TEST_F(DatagramEndpointTest, TheTwoKindsOfEndpointsRefuseEachOther) {
  DatagramNode a(network, kNear, kFar);
  DatagramNode b(network, kFar, kNear, EndpointType::rdm);
  ASSERT_EQ(b.receive(target), Status::ok);
  ASSERT_EQ(a.send(ConstBytes(target).first(8)), Status::ok);
  pass(b);
  EXPECT_TRUE(b.received.empty());
  EXPECT_EQ(b.counters.refused_stale, 1u);
  ASSERT_EQ(b.send(ConstBytes(target).first(8)), Status::ok);
  pass(b, a);
  const auto failed = test::take(b.sent);
  ASSERT_EQ(failed.size(), 1u) << "refused at once, not after the peer timeout";
  EXPECT_EQ(failed[0].status, Status::reset);
}

TEST_F(DatagramEndpointTest, NonsenseInARightFrameIsCounted) {
  DatagramNode a(network, kNear, kFar);
  wire::Segment tagged;
  tagged.flags = wire::segment_flag::kTagged;
  wire::Segment other;
  other.kind = wire::SegmentKind::done;
  for (const wire::Segment& segment : {tagged, other}) {
    const wire::DatagramHeader head(segment, {});
    const link::Path path{kNear, {}, false};
    link::OutFrame frame;
    frame.path = &path;
    frame.add(head.bytes());
    network.carry(kUnmetSource, frame);
  }
  pass(a);
  EXPECT_EQ(a.counters.refused_segment, 2u);
}

}  // namespace
}  // namespace cluster::engine
