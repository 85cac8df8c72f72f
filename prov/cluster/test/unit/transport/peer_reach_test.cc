// Peers that are lost, or were never met.
#include <gtest/gtest.h>

#include "support/node.h"

namespace cluster::test {
namespace {

class LostPeersTest : public EngineTest {
 protected:
  /// Time goes on in steps of timers.
  template <typename... Nodes>
  void wait(Duration time, Nodes&... nodes) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(1ms))
      (nodes.engine.poll(), ...);
  }
};

TEST_F(LostPeersTest, OperationsFailAtOnceUntilThePeerIsBack) {
  Node a(network, kA, kB, 1000);
  network.conditions.blackout = true;
  a.send();
  wait(5500ms, a);
  ASSERT_EQ(take_outcomes(a.sent), std::vector{Status::unreachable});
  for (int i = 0; i < 3; ++i) {
    a.send();
    EXPECT_EQ(take_outcomes(a.sent), std::vector{Status::unreachable}) << "without time, nor a turn";
  }
  EXPECT_EQ(a.logged("is lost"), 1u);
  network.conditions.blackout = false;
  Node b(network, kB, kA, 2000);
  b.receive();
  a.send();
  EXPECT_EQ(take_outcomes(a.sent), std::vector{Status::unreachable}) << "but this calls it";
  wait(2s, a, b);
  EXPECT_EQ(a.logged("is reachable again"), 1u);
  a.send();
  wait(100ms, a, b);
  EXPECT_EQ(take_outcomes(a.sent), std::vector{Status::ok});
  EXPECT_EQ(take_outcomes(b.received), std::vector{Status::ok});
  EXPECT_EQ(b.got, a.word);
}

TEST_F(LostPeersTest, AReceiveFromAPeerNeverMetEndsWithIt) {
  Node a(network, kA, kB, 1000);
  const Bytes slice = as_bytes(&a.got, sizeof a.got);
  ASSERT_EQ(a.engine.receive({.slices = {&slice, 1}, .from = 0}), Status::ok);
  wait(500ms, a);
  EXPECT_EQ(network.carried, 0u) << "it may be about to call";
  wait(6500ms, a);
  EXPECT_EQ(take_outcomes(a.received), std::vector{Status::unreachable});
  ASSERT_EQ(a.engine.receive({.slices = {&slice, 1}, .from = 0}), Status::ok);
  wait(7s, a);
  EXPECT_EQ(take_outcomes(a.received), std::vector{Status::unreachable}) << "after the loss as well";
}

TEST_F(LostPeersTest, AReceiveFromAPeerThatLivesStaysPosted) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 2000);
  const Bytes slice = as_bytes(&a.got, sizeof a.got);
  ASSERT_EQ(a.engine.receive({.slices = {&slice, 1}, .from = 0}), Status::ok);
  wait(20s, a, b);
  EXPECT_EQ(take_outcomes(a.received), std::vector<Status>{});
  b.send();
  wait(100ms, a, b);
  EXPECT_EQ(take_outcomes(a.received), std::vector{Status::ok});
}

TEST_F(LostPeersTest, AReceiveFromAPeerThatHasClosedWaitsForItsNextIncarnation) {
  Node a(network, kA, kB, 1000);
  {
    Node b(network, kB, kA, 2000);
    a.receive();
    b.send();
    wait(100ms, a, b);
    ASSERT_EQ(take_outcomes(a.received), std::vector{Status::ok});
  }
  const Bytes slice = as_bytes(&a.got, sizeof a.got);
  ASSERT_EQ(a.engine.receive({.slices = {&slice, 1}, .from = 0}), Status::ok);
  wait(20s, a);
  EXPECT_EQ(take_outcomes(a.received), std::vector<Status>{});
  Node again(network, kB, kA, 3000);
  again.send();
  wait(100ms, a, again);
  EXPECT_EQ(take_outcomes(a.received), std::vector{Status::ok});
}

/// Whether the peer closes or is lost: the receive need not be posted before.
TEST_F(LostPeersTest, AReceiveOfAMessageThatIsAnnouncedAndNotSentEndsWithAnError) {
  for (const bool orderly : {true, false}) {
    Node a(network, kA, kB, 1000);
    std::vector<std::byte> message(1 << 20);
    {
      Node b(network, kB, kA, 2000);
      const ConstBytes slice = message;
      ASSERT_EQ(b.engine.send({.slices = {&slice, 1}, .length = message.size()}), Status::ok);
      wait(100ms, a, b);
      ASSERT_EQ(a.engine.unexpected_messages(), 1u);
      network.conditions.blackout = !orderly;
    }
    if (!orderly) a.send();
    wait(6s, a);
    network.conditions.blackout = false;
    EXPECT_EQ(a.logged("has closed before it sent 1 messages that it had announced"), orderly ? 1u : 0u);
    EXPECT_EQ(a.logged("is lost"), orderly ? 0u : 1u);
    a.receive();
    EXPECT_EQ(take_outcomes(a.received), std::vector{orderly ? Status::reset : Status::unreachable});
    EXPECT_EQ(a.engine.unexpected_messages(), 0u);
  }
}

TEST_F(LostPeersTest, ReceivesFromAnySenderEndWithTheLastPeerIfThatIsAskedFor) {
  for (const bool wanted : {false, true}) {
    transport::EngineSettings settings = node_settings();
    settings.end_abandoned = wanted;
    Node a(network, kA, kB, 1000, nullptr, settings);
    a.receive();
    a.send();
    wait(5500ms, a);
    EXPECT_EQ(take_outcomes(a.received), wanted ? std::vector{Status::unreachable} : std::vector<Status>{});
  }
}

TEST_F(LostPeersTest, ALossIsReportedOnce) {
  struct Losses final : protocol::LossListener {
    void peer_lost(std::uint64_t handle, const SocketAddress& peer, Status cause) override {
      EXPECT_EQ(handle, 0u);
      EXPECT_EQ(peer, kB);
      EXPECT_EQ(cause, Status::unreachable);
      ++count;
    }
    int count = 0;
  } losses;
  Node a(network, kA, kB, 1000);
  a.engine.attach(a.book, {.tx_queue = &a.sent, .rx_queue = &a.received, .losses = &losses});
  a.send();
  wait(5500ms, a);
  EXPECT_EQ(losses.count, 1);
  a.send();
  wait(5500ms, a);
  EXPECT_EQ(losses.count, 1) << "it was not back meanwhile";
}

/// It leads to this node, wherever it came from.
TEST_F(LostPeersTest, ALoopbackAddressIsWarnedOfOnce) {
  const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
  const auto warned = [&](const SocketAddress& self, const SocketAddress& peer) {
    Node node(network, self, peer, 1000);
    node.send();
    node.send();
    return node.logged("has a loopback address");
  };
  EXPECT_EQ(warned(kA, SocketAddress::v4(ip, 9228)), 1u);
  EXPECT_EQ(warned(kA, kB), 0u);
  EXPECT_EQ(warned(SocketAddress::v4(ip, 9228), SocketAddress::v4(ip, 9229)), 0u);
}

}  // namespace
}  // namespace cluster::test
