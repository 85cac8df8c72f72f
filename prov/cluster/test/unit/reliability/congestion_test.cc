#include "reliability/congestion.h"

#include <gtest/gtest.h>

namespace cluster::reliability {
namespace {

TEST(Congestion, DoublesEachRoundUntilTheWindowOfTheFlow) {
  Congestion congestion(200);
  EXPECT_EQ(congestion.window(), 32u);
  congestion.acknowledged(32, 32);
  EXPECT_EQ(congestion.window(), 64u);
  congestion.acknowledged(64, 64);
  congestion.acknowledged(128, 128);
  EXPECT_EQ(congestion.window(), 200u);
  congestion.acknowledged(1000, 200);
  EXPECT_EQ(congestion.window(), 200u);
}

TEST(Congestion, AWindowThatIsNotUsedDoesNotGrow) {
  Congestion congestion(200);
  congestion.acknowledged(10, 10);
  EXPECT_EQ(congestion.window(), 32u);
}

TEST(Congestion, LossesOfOneRoundCostOnce) {
  Congestion congestion(100);
  for (int i = 0; i < 5; ++i) congestion.acknowledged(50, 50);
  ASSERT_EQ(congestion.window(), 100u);
  congestion.lost({10}, {101});
  EXPECT_EQ(congestion.window(), 70u);
  congestion.lost({50}, {120});
  congestion.lost({100}, {150});
  EXPECT_EQ(congestion.window(), 70u);
  congestion.lost({101}, {200});
  EXPECT_EQ(congestion.window(), 49u);
}

TEST(Congestion, GrowsByOneFramePerRoundAfterALoss) {
  Congestion congestion(100);
  for (int i = 0; i < 5; ++i) congestion.acknowledged(50, 50);
  congestion.lost({10}, {101});
  congestion.acknowledged(69, 70);
  EXPECT_EQ(congestion.window(), 70u);
  congestion.acknowledged(1, 70);
  EXPECT_EQ(congestion.window(), 71u);
}

TEST(Congestion, HasAFloor) {
  Congestion congestion(100);
  for (std::uint32_t round = 1; round < 50; ++round) congestion.lost({round * 100}, {round * 100 + 1});
  EXPECT_EQ(congestion.window(), Congestion::kFloor);
}

TEST(Congestion, ATimeoutLeavesTheFloorAndSlowStartLeadsBack) {
  Congestion congestion(100);
  for (int i = 0; i < 5; ++i) congestion.acknowledged(50, 50);
  congestion.timed_out({200});
  congestion.timed_out({201});
  EXPECT_EQ(congestion.window(), 4u);
  for (int i = 0; i < 5; ++i) congestion.acknowledged(congestion.window(), congestion.window());
  EXPECT_EQ(congestion.window(), 70u);
}

TEST(Congestion, RepairsInVainTakeTheReductionBack) {
  Congestion congestion(100);
  for (int i = 0; i < 5; ++i) congestion.acknowledged(50, 50);
  congestion.lost({10}, {101});
  congestion.repaired();
  congestion.repaired();
  congestion.repaired_in_vain(1);
  EXPECT_EQ(congestion.window(), 70u) << "the other one may have been needed";
  congestion.repaired_in_vain(1);
  EXPECT_EQ(congestion.window(), 100u);
  congestion.timed_out({300});
  congestion.repaired();
  congestion.repaired_in_vain(1);
  EXPECT_EQ(congestion.window(), 100u);
}

}  // namespace
}  // namespace cluster::reliability
