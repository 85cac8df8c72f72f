// The loss detector alone: overtaken and overdue, weak evidence, the reorder window, what is in flight.
#include "multipath/loss_detector.h"

#include <gtest/gtest.h>

namespace cluster::multipath {
namespace {

struct LossDetectorTest : testing::Test {
  LossDetectorTest() {
    for (int i = 0; i < 50; ++i) round_trip.sample(100us);
  }

  /// The latest transmission of each frame.
  struct Latest {
    std::uint32_t transmission = 0;
    Time at{};
    unsigned times = 0;
    bool lost = false;
  };

  LossDetector losses;
  RttEstimator round_trip;
  std::uint32_t transmission = 0;
  std::vector<Latest> frames;

  void send(Sequence s, Time now) {
    if (s.value == frames.size()) frames.emplace_back();
    Latest& frame = frames[s.value];
    if (frame.times != 0) losses.on_superseded({frame.transmission});
    frame = {++transmission, now, frame.times + 1, false};
    losses.on_sent(s, {transmission}, now);
  }
  Sequence next() const { return {static_cast<std::uint32_t>(frames.size())}; }
  /// Sends `count` new frames, a microsecond apart, from `begin` on.
  void send_many(std::uint32_t count, Time begin) {
    for (std::uint32_t i = 0; i < count; ++i) send(next(), begin + i * 1us);
  }
  void acknowledge(std::uint32_t s) {
    const Latest& frame = frames[s];
    losses.on_acked({{s}, {frame.transmission}, frame.at, frame.times == 1}, round_trip);
  }
  void arrive(std::uint32_t s, std::uint32_t largest_acked) {
    acknowledge(s);
    losses.on_largest_acked({largest_acked}, next());
  }
  std::size_t detect(Time now) {
    std::vector<Sequence> lost;
    losses.detect(now, round_trip, lost);
    for (const Sequence s : lost) frames[s.value].lost = true;
    return lost.size();
  }
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
  EXPECT_TRUE(frames[0].lost);
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
  EXPECT_TRUE(frames[0].lost);
}

TEST_F(LossDetectorTest, WhatTheWordDidNotCoverIsNotJudged) {
  send_many(10, Time(0us));
  acknowledge(2);
  losses.on_largest_acked({10}, {3});
  EXPECT_EQ(detect(Time(10ms)), 2u);
  EXPECT_EQ(losses.deadline(), kNever);
}

TEST_F(LossDetectorTest, SeenReorderingWidensTheWindowAtOnce) {
  send_many(10, Time(0us));
  send(next(), Time(100us));
  EXPECT_EQ(losses.reorder_window(round_trip), 25us);
  arrive(10, 11);
  arrive(0, 11);  // it had been overtaken by one sent 100 us later
  EXPECT_EQ(losses.reorder_window(round_trip), 125us);
  for (int i = 0; i < 1000; ++i) detect(Time(1ms) + i * 100us);
  EXPECT_EQ(losses.reorder_window(round_trip), 25us) << "and shrinks slowly";
}

TEST_F(LossDetectorTest, RepairsInVainWidenTheWindowOncePerRoundTripUpToFour) {
  losses.on_spurious_loss(Time(1ms), round_trip);
  losses.on_spurious_loss(Time(1ms), round_trip);
  EXPECT_EQ(losses.reorder_window(round_trip), 50us);
  for (int i = 0; i < 100; ++i) losses.on_spurious_loss(Time(2ms) + i * 100us, round_trip);
  EXPECT_EQ(losses.reorder_window(round_trip), 400us);
}

TEST_F(LossDetectorTest, AFrameSentAgainByManyTimeoutsIsRememberedOnce) {
  send_many(2, Time(0us));
  for (int i = 0; i < 1000; ++i) send({0}, Time(i * 1ms));
  EXPECT_TRUE(losses.remembers({0}, {transmission}));
  EXPECT_FALSE(losses.remembers({0}, {transmission - 1}));
  EXPECT_TRUE(losses.remembers({1}, {2}));
}

// A hostile peer acknowledges everything, but always as if nothing newer had arrived.
TEST_F(LossDetectorTest, APeerThatNamesNothingNewerDoesNotFillItsMemory) {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    send(next(), Time(i * 1us));
    acknowledge(i);
    losses.on_largest_acked({1}, next());
    detect(Time(i * 1us));
  }
  EXPECT_LE(losses.remembered(), 128u);
}

TEST_F(LossDetectorTest, InFlightIsWhatIsNeitherAcknowledgedNorLostNorSentAgain) {
  send_many(10, Time(0us));
  EXPECT_EQ(losses.in_flight(), 10u);
  arrive(9, 10);
  EXPECT_EQ(losses.in_flight(), 9u);
  losses.on_superseded({1});
  losses.on_superseded({1});
  EXPECT_EQ(losses.in_flight(), 8u);
  EXPECT_EQ(detect(Time(10ms)), 8u);
  EXPECT_EQ(losses.in_flight(), 0u);
  acknowledge(3);
  EXPECT_EQ(losses.in_flight(), 0u) << "a late arrival of a frame that was lost";
}

TEST_F(LossDetectorTest, AFailedPathLosesWhatIsInFlight) {
  send_many(4, Time(0us));
  acknowledge(1);
  std::vector<Sequence> lost;
  losses.mark_all_lost(lost);
  EXPECT_EQ(lost, (std::vector<Sequence>{{0}, {2}, {3}}));
  EXPECT_EQ(losses.in_flight(), 0u);
}

/// Numbers of other paths are missing here.
TEST_F(LossDetectorTest, FindsATransmissionAmongGaps) {
  for (std::uint32_t i = 0; i < 20; ++i) losses.on_sent({i}, {3 * i + 5}, Time(i * 1us));
  for (std::uint32_t number = 0; number < 70; ++number) {
    const bool sent = number >= 5 && number < 65 && (number - 5) % 3 == 0;
    EXPECT_EQ(losses.knows({number}), sent) << number;
    EXPECT_EQ(losses.remembers({(number - 5) / 3}, {number}), sent) << number;
  }
}

TEST_F(LossDetectorTest, WhatOtherPathsCarriedDoesNotCountAsOvertaking) {
  for (std::uint32_t i = 0; i < 6; ++i) losses.on_sent({i}, {10 * i + 5}, Time(i * 1us));
  losses.on_acked({{5}, {55}, Time(5us), true}, round_trip);
  losses.on_largest_acked({55}, {6});
  std::vector<Sequence> lost;
  losses.detect(Time(150us), round_trip, lost);
  EXPECT_EQ(lost, (std::vector<Sequence>{{0}, {1}})) << "five and four of this path have overtaken them";
  losses.detect(Time(300us), round_trip, lost);
  EXPECT_EQ(lost.size(), 5u);
}

/// Numbers wrap around: an idle path must not take for old what others sent meanwhile.
TEST_F(LossDetectorTest, APathThatWasIdleForLongWorksAsBefore) {
  send_many(1, Time(0us));
  arrive(0, 1);
  for (std::uint32_t step = 1; step <= 8; ++step) {
    const std::uint32_t number = 1 + step * 0xa0000000;
    losses.on_sent({number}, {number}, Time(1s));
    losses.on_acked({{number}, {number}, Time(1s), true}, round_trip);
    EXPECT_EQ(losses.on_largest_acked({number}, {number + 1}), Time(1s)) << step;
  }
}

TEST(AckedFrameTest, OnlyConsecutiveFramesSentOnceJoin) {
  const AckedFrame first{{4}, {9}, Time(1ms), true};
  AckedFrame frames = first;
  EXPECT_TRUE(frames.join({{5}, {10}, Time(2ms), true}));
  EXPECT_TRUE(frames.join({{6}, {11}, Time(3ms), true, 2, Time(4ms)}));
  EXPECT_EQ(frames.count, 4u);
  EXPECT_EQ(frames.sent_at, Time(1ms));
  EXPECT_EQ(frames.last_sent_at, Time(4ms));
  const AckedFrame next{{8}, {13}, Time(5ms), true};
  const auto joins = [&](AckedFrame behind) { return AckedFrame(frames).join(behind); };
  EXPECT_TRUE(joins(next));
  EXPECT_FALSE(joins({{9}, {13}, Time(5ms), true})) << "a frame between them is missing";
  EXPECT_FALSE(joins({{8}, {14}, Time(5ms), true})) << "something else was sent between them";
  EXPECT_FALSE(joins({{8}, {13}, Time(5ms), false})) << "it is not certain which transmission arrived";
  AckedFrame twice = frames;
  twice.sent_once = false;
  EXPECT_FALSE(twice.join(next));
  EXPECT_EQ(twice.count, 4u);
}

TEST(RttEstimatorTest, FollowsSamplesAndDistrustsOutliers) {
  RttEstimator round_trip;
  EXPECT_FALSE(round_trip.measured());
  EXPECT_EQ(round_trip.rto(), 1ms);
  round_trip.sample(80us);
  EXPECT_EQ(round_trip.smoothed(), 80us);
  EXPECT_EQ(round_trip.rto(), 1ms) << "the path may have been empty";
  for (int i = 0; i < 7; ++i) round_trip.sample(80us);
  EXPECT_LT(round_trip.rto(), 240us);
  for (int i = 0; i < 100; ++i) round_trip.sample(40us);
  EXPECT_LT(round_trip.smoothed(), 41us);
  EXPECT_EQ(round_trip.rto(), 200us) << "never less";
  round_trip.sample(1s);
  EXPECT_LT(round_trip.smoothed(), 80us) << "one long reply says little about the network";
  for (int i = 0; i < 100; ++i) round_trip.sample(1s);
  EXPECT_GT(round_trip.smoothed(), 900ms) << "but a slow path is believed soon";
  EXPECT_EQ(round_trip.rto(), 1s) << "never more";
  round_trip.sample(-5us);
  EXPECT_EQ(round_trip.latest(), 1ns);
}

}  // namespace
}  // namespace cluster::multipath
