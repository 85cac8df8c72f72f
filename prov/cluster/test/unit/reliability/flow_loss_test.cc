// The flow over a bad network: everything arrives once, in order and intact, whatever frames are lost,
// duplicated, reordered or damaged. Retransmissions stay in proportion to the loss.
#include <gtest/gtest.h>

#include <string>

#include "support/flow_pair.h"

namespace cluster::test {
namespace {

class FlowLoss : public testing::TestWithParam<std::uint64_t> {};

/// Fills about `count` frames: an ordered message that takes a frame of its own each.
void send_frames(FlowEnd& end, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) end.send_small(1000);
}

void send_bulks(FlowEnd& end, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) end.send_bulk(1100);
}

std::string report(FlowPair& pair) {
  const Counters& a = pair.a.counters;
  const Counters& b = pair.b.counters;
  return "sent " + std::to_string(a.frames_sent + b.frames_sent) + ", lost " +
         std::to_string(pair.network.lost) + " (" + std::to_string(pair.network.lost_data) +
         " with data), sent again " + std::to_string(a.frames_retransmitted + b.frames_retransmitted) +
         ", timeouts " + std::to_string(a.timeouts + b.timeouts) + ", faults " +
         describe(pair.a.flow->status()) + "/" + describe(pair.b.flow->status()) + ", until " +
         std::to_string(pair.clock.now().time_since_epoch() / 1us) + " us";
}

TEST_P(FlowLoss, TenThousandFramesThroughLossDuplicatesAndReordering) {
  FlowPair pair(GetParam());
  pair.network.conditions = {.loss = 0.05, .duplicate = 0.05, .delay = 20us, .jitter = 200us};
  send_frames(pair.a, 10'000);
  ASSERT_TRUE(pair.run(60s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  const std::uint64_t again = pair.a.counters.frames_retransmitted + pair.b.counters.frames_retransmitted;
  EXPECT_LE(again * 2, pair.network.lost_data * 3) << report(pair);
  EXPECT_GE(pair.a.counters.frames_sent, 10'000u);
}

// What lies behind a gap at the receiver would be lost with a sender that is killed: so no
// token is reported before the segment can be handed on.
TEST_P(FlowLoss, NothingIsReportedBeforeItCouldBeHandedOn) {
  FlowPair pair(GetParam() + 50);
  pair.network.conditions = {.loss = 0.1, .delay = 20us, .jitter = 50us};
  send_frames(pair.a, 1'000);
  const Time limit = pair.clock.now() + 20s;
  pair.a.turn();
  while (!(pair.a.idle() && pair.b.idle())) {
    ASSERT_TRUE(pair.step(limit)) << report(pair);
    ASSERT_LE(pair.a.tokens_seen.size(), pair.b.smalls.size());
  }
  pair.b.expect_all_of(pair.a);
}

TEST_P(FlowLoss, LongBulkThroughLossDuplicatesReorderingAndFullLinks) {
  FlowPair pair(GetParam() + 150);
  pair.network.conditions = {
      .loss = 0.05, .duplicate = 0.05, .corrupt = 0.01, .delay = 20us, .jitter = 100us, .burst = 23};
  std::uint64_t state = GetParam();
  for (int i = 0; i < 60; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const std::size_t length = 1 + (state >> 33) % 100'000;
    pair.a.send_long_bulk(length);
    pair.b.send_long_bulk(length / 3 + 1);
    if (i % 4 == 0) pair.a.send_small(300);
  }
  ASSERT_TRUE(pair.run(60s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
}

// The flow retransmits only the lost frames of a run.
TEST_P(FlowLoss, ALossInARunIsRepairedAlone) {
  FlowPair pair(GetParam() + 250);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(1s));
  std::size_t frames = 0;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.bytes.size() > 1400 && ++frames == 17 + GetParam() % 20;
  };
  pair.a.send_long_bulk(60 * pair.a.full_bulk());
  ASSERT_TRUE(pair.run(1s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.network.lost_data, 1u);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 1u) << report(pair);
}

TEST_P(FlowLoss, BulkBothWaysThroughLossDuplicatesAndReordering) {
  FlowPair pair(GetParam() + 100);
  pair.network.conditions = {.loss = 0.05, .duplicate = 0.05, .delay = 20us, .jitter = 100us};
  for (std::size_t round = 0; round < 50; ++round) {
    send_bulks(pair.a, 100);
    send_frames(pair.a, 20);
    send_bulks(pair.b, 50);
    pair.b.send_small(8);
  }
  ASSERT_TRUE(pair.run(60s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
  const std::uint64_t again = pair.a.counters.frames_retransmitted + pair.b.counters.frames_retransmitted;
  EXPECT_LE(again * 2, pair.network.lost_data * 3) << report(pair);
}

TEST_P(FlowLoss, RetransmissionsStayInProportionWithoutReordering) {
  FlowPair pair(GetParam() + 200);
  pair.network.conditions = {.loss = 0.02, .delay = 15us};
  send_bulks(pair.a, 5'000);
  ASSERT_TRUE(pair.run(10s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  // Lost acknowledgements cost next to nothing: the next one says it all.
  EXPECT_LE(pair.a.counters.frames_retransmitted, pair.network.lost_data * 5 / 4) << report(pair);
}

TEST_P(FlowLoss, TwentyPercentLossDoesNotStall) {
  FlowPair pair(GetParam() + 300);
  pair.network.conditions = {.loss = 0.2, .delay = 20us};
  send_frames(pair.a, 2'000);
  send_frames(pair.b, 2'000);
  ASSERT_TRUE(pair.run(20s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
}

TEST_P(FlowLoss, NothingIsSentAgainWithoutLoss) {
  FlowPair pair(GetParam() + 400);
  pair.network.conditions = {.delay = 20us};
  send_frames(pair.a, 3'000);
  send_bulks(pair.b, 3'000);
  ASSERT_TRUE(pair.run(10s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
  EXPECT_EQ(pair.a.counters.frames_retransmitted + pair.b.counters.frames_retransmitted, 0u) << report(pair);
}

TEST_P(FlowLoss, DamagedFramesAreRefusedAndSentAgain) {
  FlowPair pair(GetParam() + 500);
  pair.network.conditions = {.corrupt = 0.05, .delay = 20us, .jitter = 20us};
  send_frames(pair.a, 1'000);
  send_bulks(pair.b, 1'000);
  ASSERT_TRUE(pair.run(20s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
  pair.pass(1ms);  // the last acknowledgement may be one of them and still be on its way
  EXPECT_EQ(pair.a.refused + pair.b.refused, pair.network.damaged);
  EXPECT_GT(pair.network.damaged, 0u);
}

TEST_P(FlowLoss, BlackoutAndHealing) {
  FlowPair pair(GetParam() + 600);
  pair.network.conditions = {.loss = 0.01, .delay = 20us, .jitter = 20us};
  send_frames(pair.a, 5'000);
  send_bulks(pair.b, 5'000);
  pair.pass(1ms);
  const auto sent = [&] { return pair.a.counters.frames_sent + pair.b.counters.frames_sent; };
  const std::uint64_t before = sent();
  pair.network.conditions.blackout = true;
  pair.pass(3s);
  const std::uint64_t spurious = sent() - before;
  pair.network.conditions.blackout = false;
  ASSERT_TRUE(pair.run(5s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
  EXPECT_LT(spurious, 2 * 512 + 200u) << "two windows and a few timeouts";
}

TEST_P(FlowLoss, LinkThatTakesLittleAtATime) {
  FlowPair pair(GetParam() + 700);
  pair.network.conditions = {.loss = 0.05, .delay = 20us, .jitter = 30us, .burst = 3};
  send_frames(pair.a, 1'000);
  send_bulks(pair.b, 1'000);
  ASSERT_TRUE(pair.run(20s)) << report(pair);
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
}

#ifdef CLUSTER_SANITIZED
constexpr std::uint64_t kSeeds = 3;
#else
constexpr std::uint64_t kSeeds = 8;
#endif

INSTANTIATE_TEST_SUITE_P(Seeds, FlowLoss, testing::Range<std::uint64_t>(1, kSeeds + 1));

TEST(FlowTail, ATailLossProbeRepeatsTheLastFrameWithinAFewRoundTrips) {
  FlowPair pair(1);
  pair.network.conditions.delay = 50us;
  send_frames(pair.a, 400);  // so many that it knows how long an answer takes
  ASSERT_TRUE(pair.run(1s));
  int to_drop = 1;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.bytes.size() > 500 && to_drop-- > 0;
  };
  const Time begin = pair.clock.now();
  pair.a.send_small(1000);
  ASSERT_TRUE(pair.run(1s));
  EXPECT_LT(pair.clock.now() - begin, 500us);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 1u);
  EXPECT_EQ(pair.a.counters.timeouts, 0u);
}

TEST(FlowTail, OneLostFrameOfManyIsTheOnlyOneSentAgain) {
  FlowPair pair(1);
  send_frames(pair.a, 50);
  ASSERT_TRUE(pair.run(1s));
  int countdown = 20;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.bytes.size() > 500 && --countdown == 0;
  };
  send_frames(pair.a, 200);
  ASSERT_TRUE(pair.run(1s));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 1u);
}

// An acknowledgement has no more than 32 ranges: what lies behind them is unknown, not missing.
TEST(FlowTail, FramesBehindTheLastRangeOfAnAcknowledgementAreNotTakenForLost) {
  FlowPair pair(1);
  send_frames(pair.a, 2000);
  ASSERT_TRUE(pair.run(1s));
  ASSERT_EQ(pair.a.counters.frames_retransmitted, 0u);
  std::uint64_t dropped = 0;
  int countdown = 200;
  pair.network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    const bool lost = packet.bytes.size() > 500 && countdown > 0 && --countdown % 2 == 0;
    dropped += lost;
    return lost;
  };
  send_frames(pair.a, 300);
  ASSERT_TRUE(pair.run(1s));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(dropped, 100u);
  EXPECT_LE(pair.a.counters.frames_retransmitted, dropped + 2);
}

TEST(FlowTail, AFrameThatThePeerHoldsCostsRepetitionsAndNotTheWindow) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(1s));
  const std::size_t window = pair.a.flow->stats().paths[0].window;
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  std::array<link::InFrame, 4> frames;
  ASSERT_EQ(pair.b.link.receive_burst(frames), 1u);
  wire::FrameView view;
  ASSERT_EQ(wire::admit(frames[0].bytes, view), wire::Refusal::none);
  pair.b.flow->receive(pair.clock.now(), view, frames[0].from);
  ConstBytes segments;
  ASSERT_TRUE(pair.b.flow->receiver().next(segments));
  pair.b.flow->receiver().window().hold(segments);
  pair.pass(100ms);
  EXPECT_GE(pair.a.counters.timeouts, 4u);
  EXPECT_EQ(pair.a.flow->stats().paths[0].window, window);
  pair.b.flow->receiver().resume(pair.clock.now());
  ASSERT_TRUE(pair.run(1s));
}

TEST(FlowTail, APeerThatComputesForLongCostsFewFrames) {
  FlowPair pair(1);
  send_frames(pair.a, 50);
  ASSERT_TRUE(pair.run(1s));
  const std::uint64_t before = pair.a.counters.frames_sent;
  send_frames(pair.a, 30);
  const Time back = pair.clock.now() + 300ms;
  pair.a.turn();
  while (pair.a.flow->deadline() < back) {
    pair.clock.set(pair.a.flow->deadline());
    pair.a.turn();
  }
  // One with each timeout; after six in two parts, since the frame may be too long for the path.
  EXPECT_LT(pair.a.counters.frames_sent - before, 30u + 6u + 2 * 10u);
  pair.clock.set(back);
  ASSERT_TRUE(pair.run(100ms));
  pair.b.expect_all_of(pair.a);
  // All retransmissions turned out to be spurious, and the window is as wide as before: 30 frames at once.
  const std::uint64_t then = pair.a.counters.frames_sent;
  send_frames(pair.a, 30);
  pair.a.turn();
  EXPECT_EQ(pair.a.counters.frames_sent - then, 30u);
}

}  // namespace
}  // namespace cluster::test
