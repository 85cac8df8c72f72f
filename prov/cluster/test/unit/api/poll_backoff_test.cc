#include "api/poll_backoff.h"

#include <gtest/gtest.h>

namespace {

using cluster::api::PollBackoff;

constexpr std::uint64_t kNobody = 1'000;           // ticks: the call itself
constexpr std::uint64_t kCrowd = 50'000;           // tens of microseconds
constexpr std::uint64_t kComputation = 8'000'000;  // milliseconds

TEST(PollBackoff, YieldsOftenToOthersThatOnlyWait) {
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMax, kCrowd),
            PollBackoff::kYieldIntervalMin);
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMin, kCrowd),
            PollBackoff::kYieldIntervalMin);
}

TEST(PollBackoff, YieldsRarelyToWhoeverComputes) {
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMin, kComputation),
            PollBackoff::kYieldIntervalMax);
  EXPECT_EQ(PollBackoff::next_yield_interval(PollBackoff::kYieldIntervalMax, kComputation),
            PollBackoff::kYieldIntervalMax);
}

TEST(PollBackoff, YieldsHalfAsOftenEachTimeThatNobodyIsThere) {
  std::uint32_t every = PollBackoff::kYieldIntervalMin;
  for (std::uint32_t expected = 2 * every; expected <= PollBackoff::kYieldIntervalMax; expected *= 2) {
    every = PollBackoff::next_yield_interval(every, kNobody);
    EXPECT_EQ(every, expected);
  }
  EXPECT_EQ(PollBackoff::next_yield_interval(every, kNobody), PollBackoff::kYieldIntervalMax);
}

// A rhythm is a number of looks; it is asked at glances only.
TEST(PollBackoff, RhythmsAreWholeGlances) {
  for (std::uint32_t every = PollBackoff::kYieldIntervalMin; every <= PollBackoff::kYieldIntervalMax;
       every *= 2) {
    EXPECT_EQ(every % PollBackoff::kReadsPerCheck, 0u);
  }
}

}  // namespace
