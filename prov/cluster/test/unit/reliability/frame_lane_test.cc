// The frame lane: what it sends and takes is the same as by the general path, also over a bad network, and
// it is closed by whatever is unusual.
#include "reliability/frame_lane.h"

#include <gtest/gtest.h>

#include "support/flow_pair.h"

namespace cluster::test {
namespace {

struct LanePair : FlowPair {
  explicit LanePair(std::uint64_t seed = 1) : FlowPair(seed) {
    a.takes_alone = b.takes_alone = true;
    meet();
  }
  /// Until both sides know each other, and the path is measured.
  void meet() {
    for (int i = 0; i < 20; ++i) {
      a.send_small(40);
      b.send_small(40);
      ASSERT_TRUE(run(10s));
    }
    for (int i = 0; i < 10; ++i) answered_round();
    pass(1ms);
    a.alone_taken = b.alone_taken = 0;
  }
  /// One message each way, the second in time to carry the acknowledgement of the first.
  void answered_round() {
    for (FlowEnd* end : {&a, &b}) {
      end->send_small(40);
      end->turn();
      clock.advance(network.conditions.delay);
      (end == &a ? b : a).turn();
    }
  }
  /// From then on, acknowledgements wait for an answer.
  void get_used_to_answers() {
    for (int i = 0; i < 3; ++i) answered_round();
    a.turn();
    b.turn();
    a.alone_taken = b.alone_taken = 0;
  }
  std::uint64_t frames() const { return a.counters.frames_sent; }
  /// a's frames arrive, and b answers nothing yet.
  void arrive() {
    clock.advance(network.conditions.delay);
    b.receive();
  }
};

struct FrameLane : testing::Test {
  LanePair pair;
  reliability::FrameLane& a = pair.a.flow->lane();
  reliability::FrameLane& b = pair.b.flow->lane();
};

TEST_F(FrameLane, IsOpenOnceBothSidesKnowEachOther) {
  EXPECT_TRUE(a.open());
  EXPECT_TRUE(b.open());
  FlowPair strangers(1);
  EXPECT_FALSE(strangers.a.flow->lane().open());
  strangers.a.send_small(40);
  strangers.a.turn();
  EXPECT_FALSE(strangers.a.flow->lane().open());
}

TEST_F(FrameLane, StaysClosedIfItIsSwitchedOff) {
  FlowPair off(1, {.lane = false});
  for (int i = 0; i < 40; ++i) {
    off.a.send_small(40);
    ASSERT_TRUE(off.run(10s));
  }
  EXPECT_FALSE(off.a.flow->lane().open());
}

TEST_F(FrameLane, AMessageIsOneFrameAndArrivesByTheLane) {
  const std::uint64_t before = pair.frames();
  ASSERT_TRUE(pair.a.send_alone(64));
  EXPECT_EQ(pair.frames(), before + 1);
  pair.arrive();
  EXPECT_EQ(pair.b.alone_taken, 1u);
  ASSERT_TRUE(pair.run(10s));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 0u);
}

TEST_F(FrameLane, TheGeneralPathTakesItsFrames) {
  pair.b.takes_alone = false;
  ASSERT_TRUE(pair.a.send_alone(64));
  ASSERT_TRUE(pair.a.send_alone(1000));
  ASSERT_TRUE(pair.run(10s));
  EXPECT_EQ(pair.b.alone_taken, 0u);
  pair.b.expect_all_of(pair.a);
}

TEST_F(FrameLane, ItTakesFramesOfTheGeneralPath) {
  pair.a.send_small(64);
  pair.a.turn();
  pair.arrive();
  EXPECT_EQ(pair.b.alone_taken, 1u);
  ASSERT_TRUE(pair.run(10s));
  pair.b.expect_all_of(pair.a);
}

TEST_F(FrameLane, AnAnswerAcknowledges) {
  pair.get_used_to_answers();
  const std::uint64_t acks = pair.b.counters.acks_sent;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair.a.send_alone(64));
    pair.arrive();
    ASSERT_TRUE(pair.b.send_alone(64));
    pair.clock.advance(pair.network.conditions.delay);
    pair.a.receive();
    std::vector<carrier::Token> tokens;
    pair.a.flow->take_acked(tokens);
    for (const carrier::Token token : tokens) pair.a.tokens_seen.insert(token);
    EXPECT_EQ(tokens.size(), 1u);
  }
  EXPECT_EQ(pair.b.counters.acks_sent, acks);
  EXPECT_EQ(pair.a.alone_taken, 10u);
  ASSERT_TRUE(pair.run(10s));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 0u);
}

TEST_F(FrameLane, WithoutAnAnswerTheAcknowledgementLeavesAlone) {
  const std::uint64_t acks = pair.b.counters.acks_sent;
  ASSERT_TRUE(pair.a.send_alone(64));
  ASSERT_TRUE(pair.run(1ms));
  EXPECT_EQ(pair.b.counters.acks_sent, acks + 1);
  EXPECT_EQ(pair.a.counters.frames_retransmitted, 0u);
}

TEST_F(FrameLane, MeasuresRoundTrips) {
  pair.network.conditions.delay = 300us;
  int alone = 0;
  for (int i = 0; i < 80; ++i) {
    if (pair.a.send_alone(64)) {
      ++alone;
    } else {
      pair.a.send_small(64);
    }
    ASSERT_TRUE(pair.run(10s));
  }
  EXPECT_GT(alone, 40);
  EXPECT_GT(pair.a.flow->stats().paths.front().round_trip, 500us);
}

TEST_F(FrameLane, ClosesAfterTheFramesThatThePathAllows) {
  pair.get_used_to_answers();
  std::size_t uses = 0;
  while (a.open() && b.open() && uses < 2000) {
    FlowEnd& from = uses % 2 == 0 ? pair.a : pair.b;
    FlowEnd& to = uses % 2 == 0 ? pair.b : pair.a;
    ASSERT_TRUE(from.send_alone(8));
    pair.clock.advance(pair.network.conditions.delay);
    to.receive();
    ++uses;
  }
  EXPECT_GE(uses, 32u);
  EXPECT_LT(uses, 2000u);
  pair.a.turn();
  pair.b.turn();
  EXPECT_TRUE(a.open());
  EXPECT_TRUE(b.open());
}

// --- reasons to refuse ---

TEST_F(FrameLane, RefusesWhatDoesNotFitIntoAFrame) {
  EXPECT_TRUE(a.accepts(1400));
  EXPECT_FALSE(a.accepts(1472));
}

TEST_F(FrameLane, RefusesWhileOtherFramesWait) {
  pair.a.send_small(40);
  pair.a.pump();
  EXPECT_FALSE(a.accepts(40)) << "the open frame has to leave first";
}

TEST_F(FrameLane, RefusesWhileManyFramesAreInFlight) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(pair.a.send_alone(8));
  EXPECT_FALSE(a.accepts(8));
}

TEST_F(FrameLane, IsClosedBehindALoss) {
  pair.network.conditions.blackout = true;
  ASSERT_TRUE(pair.a.send_alone(8));
  pair.network.conditions.blackout = false;
  ASSERT_TRUE(pair.a.send_alone(8));
  pair.arrive();
  EXPECT_EQ(pair.b.alone_taken, 0u) << "an earlier frame is missing";
  pair.b.turn();
  EXPECT_FALSE(b.open());
  pair.clock.advance(pair.network.conditions.delay);
  pair.a.turn();
  EXPECT_FALSE(a.open()) << "the peer has acknowledged a later frame";
  ASSERT_TRUE(pair.run(10s));
  pair.b.expect_all_of(pair.a);
  pair.pass(1ms);
  ASSERT_TRUE(pair.a.send_alone(8)) << "all is well again";
}

TEST_F(FrameLane, ALostLoneFrameIsRetransmitted) {
  pair.network.conditions.blackout = true;
  ASSERT_TRUE(pair.a.send_alone(8));
  pair.network.conditions.blackout = false;
  ASSERT_TRUE(pair.run(10s));
  EXPECT_GT(pair.a.counters.frames_retransmitted, 0u);
  pair.b.expect_all_of(pair.a);
}

TEST_F(FrameLane, AFullLinkLeavesTheFrameToTheGeneralPath) {
  bool full = true;
  pair.network.link_full = [&](const SocketAddress&) { return full; };
  ASSERT_TRUE(pair.a.send_alone(8));
  pair.a.turn();
  EXPECT_FALSE(a.open());
  full = false;
  ASSERT_TRUE(pair.run(10s));
  pair.b.expect_all_of(pair.a);
}

TEST_F(FrameLane, ADuplicateIsNoExpectedFrame) {
  pair.network.conditions.duplicate = 1;
  ASSERT_TRUE(pair.a.send_alone(8));
  pair.arrive();
  EXPECT_EQ(pair.b.alone_taken, 1u);
  EXPECT_EQ(pair.b.counters.frames_duplicate, 1u);
  pair.network.conditions.duplicate = 0;
  ASSERT_TRUE(pair.run(10s));
  pair.b.expect_all_of(pair.a);
}

TEST_F(FrameLane, AHeldMessageClosesIt) {
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.takes_alone = false;
  std::array<link::InFrame, link::kBurstMax> frames;
  ASSERT_EQ(pair.b.link.receive_burst(frames), 1u);
  wire::FrameView view;
  ASSERT_EQ(wire::admit(frames[0].bytes, view), wire::Refusal::none);
  ASSERT_EQ(pair.b.flow->receive(pair.clock.now(), view, frames[0].from),
            reliability::ReceiveResult::accepted);
  ConstBytes segments;
  ASSERT_TRUE(pair.b.flow->receiver().next(segments));
  pair.b.flow->receiver().window().hold(segments);
  pair.b.flow->transmit(pair.clock.now(), pair.b.link);
  EXPECT_FALSE(b.open());
}

TEST_F(FrameLane, AFinClosesIt) {
  pair.a.flow->close(pair.clock.now(), pair.a.link);
  EXPECT_FALSE(a.accepts(8));
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.turn();
  EXPECT_FALSE(b.open());
}

/// Frames that differ from the expected one in one respect.
struct UnexpectedFrame : FrameLane {
  UnexpectedFrame() {
    pair.network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress&) {
      bytes = packet.bytes;
      return true;
    };
    EXPECT_TRUE(pair.a.send_alone(16));
    EXPECT_TRUE(wire::admit_lone(bytes, frame));
    EXPECT_TRUE(b.predicts(frame, from));
  }

  std::vector<std::byte> bytes;
  wire::LoneFrame frame;
  link::Path from{name_of(1), {}, false};
};

TEST_F(UnexpectedFrame, OfAnotherSession) {
  ++frame.session;
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, WithAnotherSequence) {
  const Sequence right = frame.sequence;
  frame.sequence = right + 1;
  EXPECT_FALSE(b.predicts(frame, from));
  frame.sequence = right.previous();
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, WithAnOldTransmission) {
  frame.transmission = frame.transmission.previous();
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, ThatAcknowledgesWhatWasNotSent) {
  frame.ack = frame.ack + 1;
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, WithAnOldAcknowledgement) {
  frame.ack = frame.ack.previous();
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, ThatNamesATransmissionThatWasNotSent) {
  frame.largest_acked = frame.largest_acked + 1;
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, ThatNamesAnEarlierTransmissionThanTheLast) {
  frame.largest_acked = frame.largest_acked.previous();
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, FromAnotherAddress) {
  from.to = name_of(3);
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, WithANewHardwareAddress) {
  from.mac_known = true;
  EXPECT_FALSE(b.predicts(frame, from));
}
TEST_F(UnexpectedFrame, ForAClosedLane) {
  b.close();
  EXPECT_FALSE(b.predicts(frame, from));
}

// --- a bad network ---

class LaneOverABadNetwork : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LaneOverABadNetwork, EverythingArrivesOnceInOrderAndIntact) {
  LanePair pair(GetParam());
  pair.network.conditions = {.loss = 0.02, .duplicate = 0.02, .corrupt = 0.01, .delay = 20us, .jitter = 10us};
  FakeRandom random(GetParam());
  std::size_t alone = 0;
  for (int i = 0; i < 3000; ++i) {
    FlowEnd& end = random.one_in(0.5) ? pair.a : pair.b;
    if (random.one_in(0.1)) {
      end.send_small(random.below(1400));
    } else if (end.send_alone(random.below(1400))) {
      ++alone;
    } else {
      end.send_small(8);
    }
    if (!end.unsettled) end.turn();
    const Time until = pair.clock.now() + Duration(random.below(80'000));
    while (pair.step(until)) continue;
  }
  pair.network.conditions = {.delay = 20us};
  ASSERT_TRUE(pair.run(60s));
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
  EXPECT_GT(alone, 200u);
  EXPECT_GT(pair.a.alone_taken + pair.b.alone_taken, 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LaneOverABadNetwork, testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace cluster::test
