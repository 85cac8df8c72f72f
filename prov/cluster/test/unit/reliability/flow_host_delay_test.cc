// Programs compute, and wait for a processor. Frames lie unread meanwhile (host delay). That is no reason to
// send less; real congestion still is.
#include <gtest/gtest.h>

#include <utility>

#include "multipath/congestion_controller.h"
#include "support/flow_pair.h"

namespace cluster::test {
namespace {

constexpr Duration kHostDelay = 5ms;

struct HostDelayPair : FlowPair {
  HostDelayPair() : FlowPair(1) {
    a.send_small(8);
    EXPECT_TRUE(run(1s));
  }
  multipath::PathStats rail() const { return a.flow->stats().paths.front(); }
  /// The ends run one after the other, never at the same time; a has always much to send.
  void alternate(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 100; ++i) a.send_bulk(a.full_bulk());
      for (FlowEnd* end : {&a, &b}) {
        clock.advance(kHostDelay);
        for (int turn = 0; turn < 20; ++turn) {
          end->turn();
          clock.advance(1us);
        }
      }
    }
  }
};

TEST(FlowHostDelay, TheWindowGrowsAsWithoutIt) {
  HostDelayPair pair;
  pair.alternate(60);
  EXPECT_GE(pair.rail().window, 256u);
  EXPECT_LT(pair.rail().round_trip, 100us);
}

TEST(FlowHostDelay, IsExpectedBeforeLong) {
  HostDelayPair pair;
  pair.alternate(40);
  EXPECT_GT(pair.rail().reply_longest, kHostDelay);
  const std::uint64_t repeated = pair.a.counters.frames_retransmitted;
  pair.alternate(40);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, repeated);
}

/// A burst that a turn sends after it lost the processor is dated when it leaves, not when the turn began.
TEST(FlowHostDelay, InTheMiddleOfATurnIsNotTakenForNetworkDelay) {
  HostDelayPair pair;
  bool fresh_turn = false;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    if (packet.from == name_of(1) && std::exchange(fresh_turn, false)) pair.clock.advance(kHostDelay);
    return false;
  };
  for (int round = 0; round < 40; ++round) {
    for (std::size_t i = 0; i < link::kBurstMax + 10; ++i)
      pair.a.send_bulk(pair.a.full_bulk());  // two bursts
    fresh_turn = true;
    for (FlowEnd* end : {&pair.a, &pair.b, &pair.a}) {  // the end that runs again reads first
      end->turn();
      pair.clock.advance(pair.network.conditions.delay);
    }
    ASSERT_TRUE(pair.run(1s));
  }
  EXPECT_LT(pair.rail().round_trip, 1ms);
}

TEST(FlowHostDelay, CostsTheWindowOnlyIfItLasts) {
  HostDelayPair pair;
  pair.alternate(20);
  ASSERT_TRUE(pair.run(1s));
  const std::size_t window = pair.rail().window;
  const std::uint64_t timeouts = pair.a.counters.timeouts;
  pair.network.conditions.blackout = true;
  pair.a.send_bulk(pair.a.full_bulk());
  pair.a.turn();
  while (pair.a.counters.timeouts == timeouts) ASSERT_TRUE(pair.step(kNever));
  EXPECT_EQ(pair.rail().window, window);
  while (pair.a.counters.timeouts == timeouts + 1) ASSERT_TRUE(pair.step(kNever));
  EXPECT_EQ(pair.rail().window, multipath::CongestionController::kMinimumWindow);
}

}  // namespace
}  // namespace cluster::test
