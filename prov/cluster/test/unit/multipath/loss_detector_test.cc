// The loss detector alone: overtaken and overdue, patience with few witnesses, the reorder window.
#include "multipath/loss_detector.h"

#include <gtest/gtest.h>

namespace cluster::multipath {
namespace {

struct LossDetectorTest : testing::Test {
  LossDetectorTest() {
    for (int i = 0; i < 50; ++i) round_trip.sample(100us);
  }

  reliability::SendWindow frames{64};
  LossDetector losses;
  RttEstimator round_trip;
  std::uint32_t transmission = 0;

  void send(Sequence s, Time now) {
    if (s == frames.end()) frames.push(std::make_unique<reliability::FrameBody>(1));
    frames.sent(s, {++transmission}, now);
    losses.sent({transmission}, s, now);
  }
  /// Sends `count` new frames, a microsecond apart, from `begin` on.
  void send_many(std::uint32_t count, Time begin) {
    for (std::uint32_t i = 0; i < count; ++i) send(frames.next(), begin + i * 1us);
  }
  void arrive(std::uint32_t s, std::uint32_t newest) {
    wire::Ack ack;
    ack.count = 1;
    ack.ranges[0] = {{s}, {s + 1}};
    frames.acknowledge(
        {0}, &ack, [&](Sequence, reliability::Flight& flight) { losses.arrived({s}, flight, round_trip); });
    losses.newest_arrived({newest}, frames.next());
  }
  std::size_t detect(Time now) { return losses.detect(now, round_trip, frames); }
};

TEST_F(LossDetectorTest, NothingIsLostBeforeSomethingLaterArrived) {
  send_many(10, Time(0us));
  EXPECT_EQ(detect(Time(10s)), 0u);
  EXPECT_EQ(losses.deadline(), kNever);
}

TEST_F(LossDetectorTest, OvertakenByManyIsLostAfterTheReorderWindow) {
  send_many(10, Time(0us));
  arrive(9, 10);
  // The first six (overtaken by more than three) were sent at 0..5 us; the round trip is 100 us, the
  // window a quarter of it.
  EXPECT_EQ(detect(Time(110us)), 0u);
  EXPECT_EQ(losses.deadline(), Time(125us));
  EXPECT_EQ(detect(Time(125us)), 1u);
  EXPECT_TRUE(frames.at({0}).state == reliability::Flight::State::lost);
  EXPECT_EQ(detect(Time(130us)), 5u);
  EXPECT_EQ(losses.deadline(), Time(231us)) << "those overtaken by few are given another round trip";
  EXPECT_EQ(detect(Time(233us)), 3u);
  EXPECT_EQ(losses.deadline(), kNever);
}

TEST_F(LossDetectorTest, ARepairIsJudgedByItsOwnSending) {
  send_many(10, Time(0us));
  arrive(9, 10);
  EXPECT_EQ(detect(Time(400us)), 9u);
  send({0}, Time(400us));  // transmission 11
  EXPECT_EQ(detect(Time(2ms)), 0u) << "nothing sent after it has arrived";
  for (std::uint32_t s = 1; s < 9; ++s) send({s}, Time(401us));
  arrive(8, 19);
  EXPECT_EQ(detect(Time(410us)), 0u);
  EXPECT_GT(detect(Time(800us)), 0u);
  EXPECT_TRUE(frames.at({0}).state == reliability::Flight::State::lost);
}

TEST_F(LossDetectorTest, WhatTheWordDidNotCoverIsNotJudged) {
  send_many(10, Time(0us));
  wire::Ack ack;
  ack.count = 1;
  ack.ranges[0] = {{2}, {3}};
  frames.acknowledge({0}, &ack, [&](Sequence, reliability::Flight&) {});
  losses.newest_arrived({10}, {3});
  EXPECT_EQ(detect(Time(10ms)), 2u);
  EXPECT_EQ(losses.deadline(), kNever);
}

TEST_F(LossDetectorTest, SeenReorderingWidensTheWindowAtOnce) {
  send_many(10, Time(0us));
  send(frames.next(), Time(100us));
  EXPECT_EQ(losses.reorder_window(round_trip), 25us);
  arrive(10, 11);
  arrive(0, 11);  // it had been overtaken by one sent 100 us later
  EXPECT_EQ(losses.reorder_window(round_trip), 125us);
  for (int i = 0; i < 1000; ++i) detect(Time(1ms) + i * 100us);
  EXPECT_EQ(losses.reorder_window(round_trip), 25us) << "and shrinks slowly";
}

TEST_F(LossDetectorTest, RepairsInVainWidenTheWindowOncePerRoundTripUpToFour) {
  losses.on_spurious_retransmits(Time(1ms), round_trip);
  losses.on_spurious_retransmits(Time(1ms), round_trip);
  EXPECT_EQ(losses.reorder_window(round_trip), 50us);
  for (int i = 0; i < 100; ++i) losses.on_spurious_retransmits(Time(2ms) + i * 100us, round_trip);
  EXPECT_EQ(losses.reorder_window(round_trip), 400us);
}

TEST_F(LossDetectorTest, ASilenceOfManyTimeoutsIsRememberedOnce) {
  send_many(2, Time(0us));
  for (int i = 0; i < 1000; ++i) send({0}, Time(i * 1ms));
  EXPECT_TRUE(losses.remembers({transmission}, {0}));
  EXPECT_FALSE(losses.remembers({transmission - 1}, {0}));
  EXPECT_TRUE(losses.remembers({2}, {1}));
}

// Hostile: everything is acknowledged, but always as if nothing newer had arrived.
TEST_F(LossDetectorTest, APeerThatNamesNothingNewerDoesNotFillItsMemory) {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    send(frames.next(), Time(i * 1us));
    frames.acknowledge({i + 1}, nullptr, [](Sequence, reliability::Flight&) {});
    losses.newest_arrived({1}, frames.next());
    detect(Time(i * 1us));
  }
  EXPECT_LE(losses.remembered(), 128u);
}

TEST(RttEstimatorTest, FollowsSamplesAndDistrustsOutliers) {
  RttEstimator round_trip;
  EXPECT_FALSE(round_trip.measured());
  EXPECT_EQ(round_trip.timeout(), 1ms);
  round_trip.sample(80us);
  EXPECT_EQ(round_trip.smoothed(), 80us);
  EXPECT_EQ(round_trip.timeout(), 1ms) << "the path may have been empty";
  for (int i = 0; i < 7; ++i) round_trip.sample(80us);
  EXPECT_LT(round_trip.timeout(), 240us);
  for (int i = 0; i < 100; ++i) round_trip.sample(40us);
  EXPECT_LT(round_trip.smoothed(), 41us);
  EXPECT_EQ(round_trip.timeout(), 200us) << "never less";
  round_trip.sample(1s);
  EXPECT_LT(round_trip.smoothed(), 80us) << "one absence of the peer says little about the network";
  for (int i = 0; i < 100; ++i) round_trip.sample(1s);
  EXPECT_GT(round_trip.smoothed(), 900ms) << "but a slow path is believed soon";
  EXPECT_EQ(round_trip.timeout(), 1s) << "never more";
  round_trip.sample(-5us);
  EXPECT_EQ(round_trip.latest(), 1ns);
}

}  // namespace
}  // namespace cluster::multipath
