// The congestion window alone: what makes it grow, what shrinks it, and what it ignores.
#include "multipath/congestion_controller.h"

#include <gtest/gtest.h>

namespace cluster::multipath {
namespace {

constexpr Duration kBase = 20us;

struct CongestionTest : testing::Test {
  CongestionController congestion{512};
  Time now{};
  std::uint32_t transmission = 0;

  /// A round in which the whole window was used and all but `lost` frames arrived, each `delay` late; then
  /// they, or the word of them, lay `unread`.
  void round(Duration delay = 0us, std::size_t lost = 0, Duration unread = 0us) {
    const std::size_t window = congestion.window();
    transmission += static_cast<std::uint32_t>(window);
    now += kBase + delay + unread;
    if (lost != 0) congestion.on_lost(lost);
    congestion.on_ack(
        now,
        {window - lost, window, {transmission}, {transmission + 1}, kBase + delay, kBase + delay + unread});
  }
  void grow_to(std::size_t window) {
    for (int i = 0; i < 20 && congestion.window() < window; ++i) round();
    ASSERT_GE(congestion.window(), window);
  }
};

TEST_F(CongestionTest, DoublesEachRoundUntilTheWindowOfTheFlow) {
  EXPECT_EQ(congestion.window(), CongestionController::kInitialWindow);
  round();
  EXPECT_EQ(congestion.window(), 64u);
  grow_to(512);
  round();
  EXPECT_EQ(congestion.window(), 512u);
}

TEST_F(CongestionTest, AWindowThatIsNotUsedDoesNotGrow) {
  congestion.on_ack(Time(1us), {10, 10, {10}, {11}, kBase, kBase});
  EXPECT_EQ(congestion.window(), CongestionController::kInitialWindow);
}

TEST_F(CongestionTest, RandomLossWithoutAQueueCostsNothing) {
  grow_to(512);
  for (int i = 0; i < 100; ++i) round(0us, congestion.window() / 10);
  EXPECT_EQ(congestion.window(), 512u);
}

TEST_F(CongestionTest, LossesWithAQueueCostThreeTenthsOverTheNextRound) {
  grow_to(512);
  round(60us, 1);
  EXPECT_EQ(congestion.window(), 512u) << "nothing is withheld before something arrives";
  congestion.on_ack(now, {256, 512, {transmission}, {transmission + 1}, kBase, kBase});
  EXPECT_NEAR(static_cast<double>(congestion.window()), 512 * 0.85, 2);
  congestion.on_ack(now, {256, 512, {transmission}, {transmission + 1}, kBase, kBase});
  EXPECT_EQ(congestion.window(), 512u * 7 / 10);
}

TEST_F(CongestionTest, AStandingQueueCostsInProportion) {
  grow_to(512);
  round(180us);
  round(0us);
  EXPECT_EQ(congestion.window(), 512u) << "one late round may be a peer that was away";
  round(180us);
  round(180us);
  round(180us);  // the reduction takes effect
  // 80 us too long of 200 us in all.
  EXPECT_NEAR(static_cast<double>(congestion.window()), 512 * 0.6, 4);
}

TEST_F(CongestionTest, WhatLiesUnreadIsNoQueue) {
  for (int i = 0; i < 4; ++i) round(0us, 0, 5ms);
  EXPECT_EQ(congestion.window(), 512u);
  for (int i = 0; i < 10; ++i) round(0us, 0, 5ms);
  EXPECT_EQ(congestion.window(), 512u);
}

TEST_F(CongestionTest, LossesWhileFramesLieUnreadAreAFullRing) {
  grow_to(512);
  round(0us, 1, 5ms);
  round(0us, 0, 5ms);
  EXPECT_EQ(congestion.window(), 512u * 7 / 10);
}

TEST_F(CongestionTest, NothingGrowsWhileFramesQueue) {
  round();
  const std::size_t before = congestion.window();
  round(150us);
  EXPECT_EQ(congestion.window(), before);
}

TEST_F(CongestionTest, DelayAloneLeavesTheFirstWindowAndLossesTheFloor) {
  grow_to(512);
  for (int i = 0; i < 100; ++i) round(5ms);
  EXPECT_EQ(congestion.window(), CongestionController::kInitialWindow);
  for (int i = 0; i < 100; ++i) round(5ms, 2);
  EXPECT_EQ(congestion.window(), CongestionController::kMinimumWindow);
}

TEST_F(CongestionTest, MoreThanAFifthLostIsAPolicer) {
  grow_to(512);
  round(0us, 205);
  round();
  EXPECT_NEAR(static_cast<double>(congestion.window()), 512 - 205, 2);
}

TEST_F(CongestionTest, GrowsByAFrameARoundAndDoublesAgainWhenNoQueueIsLeft) {
  grow_to(512);
  for (int i = 0; i < 6; ++i) round(60us, 1);
  const std::size_t least = congestion.window();
  ASSERT_LT(least, 200u);
  // The rest of the last reduction takes effect, then a queue of 30 us stands for ten rounds.
  for (int i = 0; i < 10; ++i) round(30us);
  EXPECT_LE(congestion.window(), least + 10);
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(congestion.window(), 512u);
}

TEST_F(CongestionTest, GrowsByAFrameARoundHoweverManyAcknowledgementsThereAre) {
  grow_to(512);
  for (int i = 0; i < 6; ++i) round(60us, 1);
  round(30us);
  const std::size_t least = congestion.window();
  for (int i = 0; i < 10; ++i) {
    const auto eighth = static_cast<std::uint32_t>(congestion.window() / 8);
    const TransmissionNumber next{transmission + 8 * eighth + 1};
    for (int ack = 0; ack < 8; ++ack) {
      transmission += eighth;
      congestion.on_ack(now, {eighth, 8 * eighth, {transmission}, next, kBase + 30us, kBase + 30us});
    }
  }
  EXPECT_LE(congestion.window(), least + 10);
  EXPECT_GE(congestion.window(), least + 8);
}

TEST_F(CongestionTest, ATimeoutLeavesTheFloorAndDoublingLeadsBack) {
  grow_to(512);
  congestion.on_persistent_timeout();
  congestion.on_persistent_timeout();
  EXPECT_EQ(congestion.window(), CongestionController::kMinimumWindow);
  for (int i = 0; i < 7; ++i) round(40us);
  EXPECT_GE(congestion.window(), 256u) << "half of what it was, since it happened twice";
  EXPECT_LT(congestion.window(), 264u);
}

TEST_F(CongestionTest, RepairsInVainTakeTheReductionBack) {
  grow_to(512);
  congestion.on_persistent_timeout();
  congestion.on_retransmit();
  congestion.on_retransmit();
  congestion.on_spurious_retransmits(1);
  EXPECT_EQ(congestion.window(), CongestionController::kMinimumWindow)
      << "the other one may have been needed";
  congestion.on_spurious_retransmits(1);
  EXPECT_EQ(congestion.window(), 512u);
  round(60us, 1);
  congestion.on_retransmit();
  congestion.on_spurious_retransmits(1);
  round();
  EXPECT_EQ(congestion.window(), 512u);
}

TEST_F(CongestionTest, LooksBeneathAQueueBeforeItForgetsHowShortTheRoundTripWas) {
  grow_to(512);
  const Time begin = now;
  std::size_t least = 512;
  while (now < begin + 6s) {
    round(80us);
    now += 1ms;
    least = std::min(least, congestion.window());
  }
  EXPECT_NEAR(static_cast<double>(least), 512 * 0.2, 4) << "a queue of four round trips was drained once";
  EXPECT_EQ(congestion.window(), 512u);
}

}  // namespace
}  // namespace cluster::multipath
