// The rooms that only keep time: retransmission timer, acknowledgement, handshake's judgement.
#include <gtest/gtest.h>

#include "reliability/ack_scheduler.h"
#include "reliability/handshake.h"
#include "reliability/retransmission_timer.h"

namespace cluster::reliability {
namespace {

using Event = RetransmissionTimer::Event;

TEST(RetransmissionTimer, ProbesOnceThenBacksOffToASecond) {
  multipath::RttEstimator round_trip;
  for (int i = 0; i < 50; ++i) round_trip.sample(100us);
  RetransmissionTimer timer(25us);
  EXPECT_EQ(timer.deadline(round_trip), kNever);
  timer.sent(Time(1ms));
  EXPECT_EQ(timer.deadline(round_trip), Time(1ms) + 225us);
  EXPECT_EQ(timer.on_timer(Time(1ms) + 224us, round_trip), Event::none);
  Time now = timer.deadline(round_trip);
  EXPECT_EQ(timer.on_timer(now, round_trip), Event::probe);
  Duration last{0};
  for (int i = 0; i < 20; ++i) {
    timer.sent(now);
    const Duration wait = timer.deadline(round_trip) - now;
    EXPECT_TRUE(wait == 2 * last || wait == 1s || i == 0);
    last = wait;
    now += wait;
    EXPECT_EQ(timer.on_timer(now, round_trip), Event::timeout);
  }
  EXPECT_EQ(last, 1s);
  timer.progress(now, true);
  EXPECT_EQ(timer.deadline(round_trip), now + 225us);
  timer.progress(now, false);
  EXPECT_EQ(timer.deadline(round_trip), kNever);
}

TEST(RetransmissionTimer, WithoutAMeasurementItWaitsAMillisecond) {
  const multipath::RttEstimator round_trip;
  RetransmissionTimer timer(25us);
  timer.sent(Time(0us));
  EXPECT_EQ(timer.on_timer(timer.deadline(round_trip), round_trip), Event::timeout);
}

TEST(RetransmissionTimer, HurryBringsTheNextTryForwardAndIsNoTimeout) {
  const multipath::RttEstimator round_trip;
  RetransmissionTimer timer(25us);
  timer.sent(Time(0us));
  for (int i = 0; i < 15; ++i) timer.on_timer(timer.deadline(round_trip), round_trip);
  const Time now = timer.deadline(round_trip) - 900ms;
  timer.hurry(now + 20ms);
  EXPECT_EQ(timer.deadline(round_trip), now + 20ms);
  EXPECT_EQ(timer.on_timer(now + 20ms, round_trip), Event::probe);
  EXPECT_EQ(timer.on_timer(now + 20ms, round_trip), Event::none);
}

TEST(AckScheduler, CountsFramesByClass) {
  AckScheduler acks(25us);
  for (std::uint32_t i = 1; i <= 15; ++i)
    acks.arrived(Time(0us), Time(0us), {i}, true, AckScheduler::Urgency::none);
  EXPECT_FALSE(acks.due(Time(0us)));
  EXPECT_EQ(acks.deadline(), Time(25us));
  acks.arrived(Time(0us), Time(0us), {16}, true, AckScheduler::Urgency::none);
  EXPECT_TRUE(acks.due(Time(0us)));
  acks.sent(Time(9us), true);
  EXPECT_FALSE(acks.owed());
  for (std::uint32_t i = 17; i <= 24; ++i)
    acks.arrived(Time(9us), Time(9us), {i}, false, AckScheduler::Urgency::none);
  EXPECT_TRUE(acks.due(Time(9us)));
}

TEST(AckScheduler, DataThatFollowsALoneOneSoonEnoughWouldHaveTakenItAlong) {
  for (const Duration later : {25us, 26us}) {
    AckScheduler acks(100us);
    acks.arrived(Time(0us), Time(0us), {1}, true, AckScheduler::Urgency::soon);
    EXPECT_EQ(acks.deadline(), Time(10us));
    acks.sent(Time(10us), true);
    acks.sent(Time(10us) + later, false);
    const Time now = Time(50us);
    acks.arrived(now, now, {2}, true, AckScheduler::Urgency::soon);
    EXPECT_EQ(acks.deadline(), later == 25us ? now + 10us : now);
  }
}

TEST(AckScheduler, SaysHowOldTheNewestArrivalIs) {
  AckScheduler acks(25us);
  acks.arrived(Time(10us), Time(10us), {5}, true, AckScheduler::Urgency::none);
  acks.arrived(Time(90us), Time(90us), {4}, true, AckScheduler::Urgency::now);
  EXPECT_EQ(acks.newest(), (Sequence{5}));
  EXPECT_EQ(acks.delay_field(Time(10us) + 10240ns), 10);
  EXPECT_EQ(acks.delay_field(Time(10s)), 65535);
  EXPECT_EQ(acks.delay_field(Time(9us)), 0);
  acks.arrived(Time(5ms), Time(1ms), {6}, true, AckScheduler::Urgency::none);
  EXPECT_EQ(acks.delay_field(Time(1ms) + 4096us), 4000) << "from when it came, not from when somebody looked";
}

TEST(Handshake, JudgesLivesByEpoch) {
  wire::Opening opening;
  opening.epoch = 5;
  opening.session = 50;
  EXPECT_EQ(classify_opening(std::nullopt, opening), OpeningClass::fresh);
  EXPECT_EQ(classify_opening(PeerSession{5, 50}, opening), OpeningClass::same);
  EXPECT_EQ(classify_opening(PeerSession{4, 50}, opening), OpeningClass::newer);
  EXPECT_EQ(classify_opening(PeerSession{6, 60}, opening), OpeningClass::stale);
  EXPECT_EQ(classify_opening(PeerSession{5, 51}, opening), OpeningClass::stale);
}

}  // namespace
}  // namespace cluster::reliability
