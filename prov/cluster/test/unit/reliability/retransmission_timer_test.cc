// Nothing is acknowledged: a tail loss probe, then timeouts that back off.
#include "reliability/retransmission_timer.h"

#include <gtest/gtest.h>

namespace cluster::reliability {
namespace {

using Event = RetransmissionTimer::Event;

TEST(RetransmissionTimer, OneTailLossProbeThenTimeoutsThatBackOff) {
  multipath::RttEstimator round_trip;
  for (int i = 0; i < 50; ++i) round_trip.sample(100us);
  RetransmissionTimer timer(25us);
  EXPECT_EQ(timer.deadline(round_trip), kNever);
  timer.on_sent(Time(1ms));
  EXPECT_EQ(timer.deadline(round_trip), Time(1ms) + 225us);
  EXPECT_EQ(timer.on_timer(Time(1ms) + 224us, round_trip), Event::none);
  Time now = timer.deadline(round_trip);
  EXPECT_EQ(timer.on_timer(now, round_trip), Event::tlp);
  Duration last{0};
  for (int i = 0; i < 30; ++i) {
    timer.on_sent(now);
    const Duration wait = timer.deadline(round_trip) - now;
    EXPECT_TRUE(i == 0 || wait == (i < 20 ? std::min<Duration>(2 * last, 32ms) : 1s)) << i;
    last = wait;
    now += wait;
    EXPECT_EQ(timer.on_timer(now, round_trip), Event::rto);
  }
  timer.on_progress(now, true);
  EXPECT_EQ(timer.deadline(round_trip), now + 225us);
  timer.on_progress(now, false);
  EXPECT_EQ(timer.deadline(round_trip), kNever);
}

/// Found by the simulator (keyed seed 1394997757181541180): the first acknowledgement of a session came after
/// an outage, and the tail loss probe would have waited for 99 s.
TEST(RetransmissionTimer, TheFirstAnswerAfterAnOutageDelaysNothing) {
  multipath::RttEstimator round_trip;
  round_trip.sample(33s);
  RetransmissionTimer timer(25us);
  timer.on_sent(Time(1ms));
  EXPECT_LE(timer.deadline(round_trip), Time(1ms) + 4s);
}

TEST(RetransmissionTimer, ItIsPersistentAfterTwoTimeoutsInARowWithoutAnAnswer) {
  const multipath::RttEstimator round_trip;
  RetransmissionTimer timer(25us);
  timer.on_sent(Time(0us));
  const auto time_out = [&] { timer.on_timer(timer.deadline(round_trip), round_trip); };
  for (int i = 0; i < 5; ++i) {
    time_out();
    EXPECT_FALSE(timer.persistent());
    timer.on_answer();
  }
  time_out();
  EXPECT_FALSE(timer.persistent());
  time_out();
  EXPECT_TRUE(timer.persistent());
}

TEST(RetransmissionTimer, TimeoutsBackOffToTheIntervalOfCallsAsLongAsNothingWasAnswered) {
  const multipath::RttEstimator round_trip;
  RetransmissionTimer timer(25us);
  Time now(1ms);
  for (int i = 0; i < 20; ++i) {
    timer.on_sent(now);
    now = timer.deadline(round_trip);
    timer.on_timer(now, round_trip);
  }
  timer.on_sent(now);
  EXPECT_EQ(timer.deadline(round_trip), now + 250ms);
}

TEST(RetransmissionTimer, TimeoutsAreNeverEarlierThanTheReplyTimeAllows) {
  multipath::RttEstimator round_trip;
  for (int i = 0; i < 50; ++i) round_trip.sample(80ms);
  RetransmissionTimer timer(25us);
  Time now(1ms);
  for (int i = 0; i < 4; ++i) {
    timer.on_sent(now);
    const Time due = timer.deadline(round_trip);
    EXPECT_GE(due - now, 80ms);
    now = due;
    timer.on_timer(now, round_trip);
  }
}

TEST(RetransmissionTimer, WithoutAMeasurementItWaitsAMillisecond) {
  const multipath::RttEstimator round_trip;
  RetransmissionTimer timer(25us);
  timer.on_sent(Time(0us));
  EXPECT_EQ(timer.on_timer(timer.deadline(round_trip), round_trip), Event::rto);
}

TEST(RetransmissionTimer, WhereTurnsComeLateAnAnswerHasTimeForSeveral) {
  multipath::RttEstimator round_trip;
  for (int i = 0; i < 50; ++i) round_trip.sample(100us);
  TurnDelay turns;
  RetransmissionTimer timer(25us, &turns);
  Time now(1s);
  for (int i = 0; i < 10; ++i, now += 200ms) turns.observe(now, now - 150ms);
  timer.on_sent(now);
  EXPECT_GE(timer.deadline(round_trip), now + 300ms);
  EXPECT_LE(timer.deadline(round_trip), now + 450ms);
  EXPECT_EQ(timer.on_timer(now + 200ms, round_trip), Event::none);
  TurnDelay closing = turns;
  RetransmissionTimer last(25us, &closing);
  last.on_sent(now);
  closing.disregard();
  EXPECT_EQ(last.deadline(round_trip), now + 225us) << "an endpoint that closes has no time for that";
  timer.expedite(now + 200ms);
  EXPECT_EQ(timer.on_timer(now + 200ms, round_trip), Event::tlp) << "the peer is known to have dropped it";
  for (int i = 0; i < 100; ++i) turns.observe(now, now);
  timer.on_progress(now, true);
  EXPECT_EQ(timer.deadline(round_trip), now + 225us);
}

TEST(RetransmissionTimer, ExpediteBringsTheNextRetransmissionForwardAndIsNoTimeout) {
  const multipath::RttEstimator round_trip;
  RetransmissionTimer timer(25us);
  timer.on_sent(Time(0us));
  for (int i = 0; i < 15; ++i) timer.on_timer(timer.deadline(round_trip), round_trip);
  const Time now = timer.deadline(round_trip) - 900ms;
  timer.expedite(now + 20ms);
  EXPECT_EQ(timer.deadline(round_trip), now + 20ms);
  EXPECT_EQ(timer.on_timer(now + 20ms, round_trip), Event::tlp);
  EXPECT_EQ(timer.on_timer(now + 20ms, round_trip), Event::none);
}

TEST(RetransmissionTimer, ExpediteConcernsNoLaterFrame) {
  multipath::RttEstimator round_trip;
  for (int i = 0; i < 50; ++i) round_trip.sample(100us);
  RetransmissionTimer timer(25us);
  timer.expedite(Time(1ms));
  EXPECT_EQ(timer.deadline(round_trip), kNever);
  timer.on_sent(Time(2ms));
  EXPECT_EQ(timer.deadline(round_trip), Time(2ms) + 225us);
}

}  // namespace
}  // namespace cluster::reliability
