// When a flow acknowledges, and in which frame.
#include <gtest/gtest.h>

#include "support/frame_tap.h"

namespace cluster::test {
namespace {

TEST(FlowAck, RidesOnData) {
  FlowPair pair(1);
  open_session(pair);
  FrameTap tap(pair.network);
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.receive();
  pair.b.send_small(8);
  pair.b.turn();
  ASSERT_EQ(tap.frames.size(), 2u);
  EXPECT_TRUE(tap.frames[1].data());
  EXPECT_TRUE(tap.frames[1].acknowledges());
  pair.clock.advance(100us);
  pair.a.receive();
  EXPECT_TRUE(pair.a.flow->queue().drained());
  EXPECT_EQ(pair.b.counters.acks_sent, 1u) << "only while the session opened";
}

TEST(FlowAck, ComesWithinTheDelayIfThePeerDoesNotWait) {
  FlowPair pair(1);
  open_session(pair);
  pair.a.send_small(8, false);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.turn();
  EXPECT_EQ(pair.b.flow->deadline(), pair.clock.now() + pair.b.settings.ack_delay);
  EXPECT_FALSE(pair.b.flow->quiet());
  pair.clock.set(pair.b.flow->deadline());
  pair.b.turn();
  EXPECT_TRUE(pair.b.flow->quiet());
}

/// b answers at once, as the flows will expect from then on.
void converse(FlowPair& pair) {
  for (const auto& [from, to] : {std::pair{&pair.a, &pair.b}, std::pair{&pair.b, &pair.a}}) {
    from->send_small(8);
    from->turn();
    pair.clock.advance(pair.network.conditions.delay);
    to->turn();
  }
}

TEST(FlowAck, ComesSoonIfThePeerWaitsAndNeverLaterThanTheDelay) {
  for (const auto& [option, wait] : {std::pair{25us, 10us}, std::pair{3us, 3us}}) {
    reliability::FlowSettings settings;
    settings.ack_delay = option;
    FlowPair pair(1, settings);
    open_session(pair);
    converse(pair);
    pair.a.send_small(8);
    pair.a.turn();
    pair.clock.advance(pair.network.conditions.delay);
    pair.b.turn();
    EXPECT_EQ(pair.b.flow->deadline(), pair.clock.now() + wait);
  }
}

/// A tail loss probe would retransmit a frame that was not lost.
TEST(FlowAck, APeerThatSaysThatItIsLateHasSoMuchLonger) {
  for (const Duration delay : {reliability::kAckDelay, reliability::kAckDelayLate}) {
    FlowPair pair(1);
    pair.b.settings.ack_delay = delay;
    pair.b.begin(2);
    open_session(pair);
    for (int i = 0; i < 20; ++i) converse(pair);
    ASSERT_TRUE(pair.run(10ms));
    pair.a.send_small(8, false);
    ASSERT_TRUE(pair.run(10ms));
    EXPECT_EQ(pair.a.counters.frames_retransmitted, 0u) << delay.count();
  }
}

/// A receiver that computes with what it has received polls again when that is done: the sender shall not
/// wait for it more than once.
TEST(FlowAck, ComesAtOnceIfThePeerWaitsAndRepliesWereLate) {
  FlowPair pair(1);
  open_session(pair);
  converse(pair);
  const auto ask = [&] {
    const auto before = pair.b.counters.acks_sent;
    pair.a.send_bulk(1200);
    pair.a.turn();
    pair.clock.advance(pair.network.conditions.delay);
    pair.b.turn();
    return pair.b.counters.acks_sent - before;
  };
  EXPECT_EQ(ask(), 0u);
  pair.clock.advance(1ms);
  pair.b.turn();  // late, and alone
  EXPECT_EQ(ask(), 1u);
  EXPECT_TRUE(pair.b.flow->quiet());
}

/// A message of a has come to b, which has not looked yet.
void send_to_b(FlowPair& pair) {
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
}

/// b answers, and its application sends something soon, so often that answers wait for it.
void follow_answers(FlowPair& pair) {
  for (int i = 0; i < 4; ++i) {
    send_to_b(pair);
    pair.b.send_answer();
    pair.b.turn();
    pair.clock.advance(5us);
    pair.b.send_small(8);
    pair.b.turn();
    pair.clock.advance(pair.network.conditions.delay);
    pair.a.turn();
  }
}

TEST(FlowAck, AnswersWaitForItAndTravelWithWhatFollows) {
  FlowPair pair(1);
  open_session(pair);
  follow_answers(pair);
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  FrameTap tap(pair.network);
  for (int i = 0; i < 3; ++i) {
    pair.b.send_answer();
    pair.b.turn();
  }
  EXPECT_EQ(tap.frames.size(), 0u);
  pair.b.send_small(8);
  pair.b.turn();
  ASSERT_EQ(tap.frames.size(), 1u);
  EXPECT_TRUE(tap.frames[0].ordered() && tap.frames[0].acknowledges());
  ASSERT_TRUE(pair.run(100ms));
  EXPECT_EQ(pair.a.answers, 7u);
}

TEST(FlowAck, AnswersLeaveWithItAtTheLatest) {
  FlowPair pair(1);
  open_session(pair);
  follow_answers(pair);
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  FrameTap tap(pair.network);
  pair.b.send_answer();
  pair.b.turn();
  EXPECT_EQ(tap.frames.size(), 0u);
  EXPECT_LE(pair.b.flow->deadline(), pair.clock.now() + 10us);
  pair.clock.advance(10us);
  pair.b.turn();
  ASSERT_EQ(tap.frames.size(), 1u);
  EXPECT_TRUE(tap.frames[0].data() && tap.frames[0].acknowledges());
  pair.a.send_small(8);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  tap.frames.clear();
  pair.b.send_answer();
  pair.b.turn();
  EXPECT_EQ(tap.frames.size(), 1u) << "nothing followed the one before: this time nothing is waited for";
}

// It replies to one message at once, and computes for long after the next, without a turn of its engine.
TEST(FlowAck, AnswersDoNotWaitForAnApplicationThatOftenComputes) {
  FlowPair pair(1);
  open_session(pair);
  follow_answers(pair);
  int late = 0;
  for (int i = 0; i < 20; ++i) {
    send_to_b(pair);
    pair.b.send_answer();
    pair.b.turn();
    pair.clock.advance(5us);
    pair.b.send_small(8);
    pair.b.turn();
    send_to_b(pair);
    FrameTap tap(pair.network);
    pair.b.send_answer();
    pair.b.turn();
    late += tap.frames.empty();
    pair.clock.advance(5ms);
    pair.b.turn();
    pair.a.turn();
    pair.network.drop = nullptr;
  }
  EXPECT_LE(late, 1);
}

TEST(FlowAck, AnswersDoNotWaitWhereNoneIsOwed) {
  FlowPair pair(1);
  open_session(pair);
  ASSERT_TRUE(pair.run(100ms));
  FrameTap tap(pair.network);
  pair.b.send_answer();
  pair.b.turn();
  EXPECT_EQ(tap.frames.size(), 1u);
}

TEST(FlowAck, AnExchangeOfMessagesNeedsNone) {
  FlowPair pair(1);
  open_session(pair);
  pair.a.send_bulk(1200);
  pair.a.turn();
  pair.clock.advance(1ms);
  pair.b.turn();
  pair.clock.advance(1ms);
  pair.b.turn();
  std::uint64_t before = 0;
  for (int i = 0; i < 10; ++i) {
    if (i == 2) before = pair.a.counters.acks_sent + pair.b.counters.acks_sent;
    for (const auto& [from, to] : {std::pair{&pair.a, &pair.b}, std::pair{&pair.b, &pair.a}}) {
      from->send_bulk(1200);
      from->turn();
      pair.clock.advance(pair.network.conditions.delay);
      to->turn();
    }
  }
  EXPECT_EQ(pair.a.counters.acks_sent + pair.b.counters.acks_sent, before)
      << "each carries the acknowledgement of the other";
}

TEST(FlowAck, GoesAloneIfItsRangesDoNotFit) {
  FlowPair pair(1);
  open_session(pair);
  bool first = true;
  pair.network.drop = [&](const FakeNetwork::Packet&, const SocketAddress&) {
    return std::exchange(first, false);
  };
  pair.a.send_bulk(1000);  // lost
  pair.a.send_bulk(1000);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.receive();
  FrameTap tap(pair.network);
  pair.b.send_bulk(pair.b.full_bulk());
  pair.b.turn();
  ASSERT_EQ(tap.frames.size(), 2u);
  EXPECT_TRUE(tap.frames[0].data());
  EXPECT_FALSE(tap.frames[0].acknowledges()) << "an acknowledgement without its gaps would be a lie";
  EXPECT_FALSE(tap.frames[1].data());
  EXPECT_EQ(tap.frames[1].flags & wire::frame_flag::kAckBlock, wire::frame_flag::kAckBlock);
}

TEST(FlowAck, SequencesWrapAround) {
  // Sequences begin at 0 in each flow, so only their arithmetic can be tested at the wrap (see the
  // tests of the windows); a flow can only be shown to outlive many laps of its rings.
  FlowPair pair(3);
  pair.network.conditions = {.loss = 0.01, .delay = 5us};
  for (int lap = 0; lap < 10; ++lap) {
    for (int i = 0; i < 2000; ++i) pair.a.send_bulk(300);
    ASSERT_TRUE(pair.run(5s));
  }
  pair.b.expect_all_of(pair.a);
}

}  // namespace
}  // namespace cluster::test
