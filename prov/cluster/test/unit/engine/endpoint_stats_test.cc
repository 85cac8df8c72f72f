// What an endpoint shows to observers: every peer with its carrier and the reason, before and after it is
// lost. Reading the statistics changes nothing.
#include "engine/endpoint_stats.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::Node;
using test::node_name;

class EndpointStatsTest : public ::testing::Test {
 protected:
  template <typename... Nodes>
  void pass(int turns, Nodes&... nodes) {
    for (int i = 0; i < turns; ++i) {
      clock.advance(5us);
      (nodes.engine.poll(), ...);
    }
  }

  test::FakeClock clock;
  test::FakeNetwork network{clock, 1};
};

TEST_F(EndpointStatsTest, NoPeersBeforeTheFirstMessage) {
  Node a(network, node_name(1), node_name(2), 1000);
  clock.advance(3s);
  const std::optional<EndpointStats> seen = a.engine.stats();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->now - seen->since, 3s);
  EXPECT_TRUE(seen->peers.empty()) << "an address that was never used is no peer";
}

TEST_F(EndpointStatsTest, APeerOverTheNetwork) {
  Node a(network, node_name(1), node_name(2), 1000);
  Node b(network, node_name(2), node_name(1), 1000);
  for (int i = 0; i < 10; ++i) {
    a.send();
    pass(40, a, b);
  }
  const PeerStats seen = a.peer();
  EXPECT_EQ(seen.name, node_name(2));
  EXPECT_STREQ(seen.carrier, "fake");
  EXPECT_EQ(seen.carrier_reason, "no shared memory: this endpoint does not use it");
  EXPECT_FALSE(seen.rings);
  ASSERT_TRUE(seen.flow && seen.flow->paths.size() == 1);
  EXPECT_EQ(seen.flow->sent, a.counters().frames_sent);
  EXPECT_EQ(seen.flow->lost, 0u);
  EXPECT_EQ(seen.flow->frame_max, 1472u);
  EXPECT_EQ(seen.flow->paths[0].to, node_name(2));
  EXPECT_GE(seen.flow->paths[0].round_trip, 20us) << "ten each way";
  EXPECT_LT(seen.flow->paths[0].round_trip, 100us);
  EXPECT_GE(seen.flow->paths[0].window, 32u);
  EXPECT_EQ(seen.flow->paths[0].in_flight, 0u);
  EXPECT_GT(seen.footprint, 1000u);
  EXPECT_EQ(b.peer().carrier_reason, "the peer opened the session");
  clock.advance(5s);
  EXPECT_GE(clock.now() - a.peer().flow->heard_at, 5s);
}

TEST_F(EndpointStatsTest, WhatIsLostAndSentAgainIsCountedForItsPeer) {
  Node a(network, node_name(1), node_name(2), 1000);
  Node b(network, node_name(2), node_name(1), 1000);
  a.send();
  pass(100, a, b);
  network.conditions.loss = 0.3;
  for (int i = 0; i < 200; ++i) {
    a.send();
    pass(10, a, b);
  }
  network.conditions.loss = 0;
  pass(20'000, a, b);
  const PeerStats seen = a.peer();
  EXPECT_GT(seen.flow->lost, 10u);
  EXPECT_EQ(seen.flow->retransmitted, a.counters().frames_retransmitted);
  EXPECT_EQ(seen.flow->sent, a.counters().frames_sent);
}

TEST_F(EndpointStatsTest, APeerThatHasGone) {
  Node a(network, node_name(1), node_name(2), 1000);
  {
    Node b(network, node_name(2), node_name(1), 1000);
    a.send();
    pass(100, a, b);
  }
  pass(100, a);
  const PeerStats seen = a.peer();
  EXPECT_STREQ(seen.carrier, "none");
  EXPECT_EQ(seen.carrier_reason, "the peer has closed");
  EXPECT_FALSE(seen.flow);
}

TEST_F(EndpointStatsTest, APeerThatIsLost) {
  Node a(network, node_name(1), node_name(2), 1000);
  Node b(network, node_name(2), node_name(1), 1000);
  a.send();
  pass(100, a, b);
  EXPECT_EQ(a.peer().lost, Status::ok);
  network.conditions.blackout = true;
  a.send();
  for (int i = 0; i < 100 && a.peer().lost == Status::ok; ++i) {
    clock.advance(100ms);
    a.engine.poll();
  }
  const Time lost_at = clock.now();
  EXPECT_EQ(a.peer().lost, Status::unreachable);
  EXPECT_EQ(a.logged("is lost: peer unreachable, no answer for 5.0 s (FI_CLUSTER_PEER_TIMEOUT)"), 1u);
  clock.advance(7s);
  a.engine.poll();
  EXPECT_EQ(a.peer().lost_at, lost_at);
}

TEST_F(EndpointStatsTest, MessagesThatNoReceiveMatches) {
  Node a(network, node_name(1), node_name(2), 1000);
  Node b(network, node_name(2), node_name(1), 1000);
  const ConstBytes slice = as_bytes(&a.word, sizeof a.word);
  EXPECT_EQ(a.engine.send({.slices = {&slice, 1}, .length = sizeof a.word, .tag = 77, .tagged = true}),
            Status::ok);
  a.send();
  pass(100, a, b);
  const std::optional<EndpointStats> seen = b.engine.stats();
  ASSERT_TRUE(seen && seen->messages.size() == 2 && seen->unexpected == 2);
  const protocol::StoredMessage& tagged = seen->messages[seen->messages[0].tagged ? 0 : 1];
  EXPECT_EQ(tagged.peer, node_name(1));
  EXPECT_EQ(tagged.tag, 77u);
  EXPECT_EQ(tagged.length, sizeof a.word);
}

TEST_F(EndpointStatsTest, APeerThatGoesInTheMiddleOfAnOperation) {
  EngineSettings settings = test::node_settings();
  settings.net_eager_max = 0;  // the message waits for its receive
  Node a(network, node_name(1), node_name(2), 1000, nullptr, settings);
  {
    Node b(network, node_name(2), node_name(1), 1000);
    a.send();
    pass(100, a, b);
    EXPECT_EQ(a.logged("has closed"), 0u);
  }
  pass(100, a);
  EXPECT_EQ(a.logged("has closed before operations with it were complete"), 1u);
}

TEST_F(EndpointStatsTest, SelfAndDatagrams) {
  Node a(network, node_name(1), node_name(1), 1000);
  a.send();
  EXPECT_STREQ(a.peer().carrier, "self");
  EXPECT_EQ(a.peer().carrier_reason, "the peer is this endpoint");
  Node d(network, node_name(3), node_name(1), 1000, nullptr, test::node_settings(),
         {.type = EndpointType::dgram});
  d.send();
  EXPECT_STREQ(d.peer().carrier, "fake");
  EXPECT_FALSE(d.peer().flow);
}

TEST_F(EndpointStatsTest, LookingFromAnotherThreadNeverWaits) {
  Node a(network, node_name(1), node_name(2), 1000);
  Node b(network, node_name(2), node_name(1), 1000);
  std::size_t looks = 0;
  std::jthread looker([&](const std::stop_token& end) {
    while (!end.stop_requested()) looks += a.engine.stats() ? 1 : 0;
  });
  for (int i = 0; i < 200; ++i) {
    a.send();
    pass(5, a, b);
  }
  while (!a.engine.stats()) std::this_thread::yield();
  looker.request_stop();
  looker.join();
  EXPECT_EQ(a.peer().flow->sent, a.counters().frames_sent);
}

}  // namespace
}  // namespace cluster::engine
