#include "api/patience.h"

#include <gtest/gtest.h>

namespace {

using cluster::api::Patience;

constexpr std::uint64_t kNobody = 1'000;           // ticks: the call itself
constexpr std::uint64_t kCrowd = 50'000;           // tens of microseconds
constexpr std::uint64_t kComputation = 8'000'000;  // milliseconds

TEST(Patience, YieldsOftenToOthersThatOnlyWait) {
  EXPECT_EQ(Patience::next_rhythm(Patience::kYieldRarely, kCrowd), Patience::kYieldOften);
  EXPECT_EQ(Patience::next_rhythm(Patience::kYieldOften, kCrowd), Patience::kYieldOften);
}

TEST(Patience, YieldsRarelyToWhoeverComputes) {
  EXPECT_EQ(Patience::next_rhythm(Patience::kYieldOften, kComputation), Patience::kYieldRarely);
  EXPECT_EQ(Patience::next_rhythm(Patience::kYieldRarely, kComputation), Patience::kYieldRarely);
}

TEST(Patience, YieldsHalfAsOftenEachTimeThatNobodyIsThere) {
  std::uint32_t every = Patience::kYieldOften;
  for (std::uint32_t expected = 2 * every; expected <= Patience::kYieldRarely; expected *= 2) {
    every = Patience::next_rhythm(every, kNobody);
    EXPECT_EQ(every, expected);
  }
  EXPECT_EQ(Patience::next_rhythm(every, kNobody), Patience::kYieldRarely);
}

// A rhythm is a number of looks; it is asked at glances only.
TEST(Patience, RhythmsAreWholeGlances) {
  for (std::uint32_t every = Patience::kYieldOften; every <= Patience::kYieldRarely; every *= 2) {
    EXPECT_EQ(every % Patience::kLooksPerGlance, 0u);
  }
}

}  // namespace
