#include "engine/answer_limiter.h"

#include <gtest/gtest.h>

#include "engine/answered_calls.h"
#include "engine/peer_limit.h"
#include "support/fake_environment.h"

namespace cluster::engine {
namespace {

constexpr Time kStart{1h};

std::int64_t admitted(AnswerLimiter& limiter, Time from, Time until, Duration step) {
  std::int64_t count = 0;
  for (Time now = from; now < until; now += step) count += limiter.admits_unknown(now) ? 1 : 0;
  return count;
}

TEST(AnswerLimiterTest, AFloodDrawsABurstAndThenSoManyASecond) {
  AnswerLimiter limiter;
  EXPECT_EQ(admitted(limiter, kStart, kStart + 1s, 10us), AnswerLimiter::kBurst + AnswerLimiter::kPerSecond);
  EXPECT_EQ(admitted(limiter, kStart + 1s, kStart + 2s, 10us), AnswerLimiter::kPerSecond);
}

TEST(AnswerLimiterTest, WhatWasNotUsedIsThereAgainButNoMoreThanABurst) {
  AnswerLimiter limiter;
  admitted(limiter, kStart, kStart + 1s, 10us);
  constexpr std::int64_t kAsked = 2 * AnswerLimiter::kBurst;
  EXPECT_EQ(admitted(limiter, kStart + 100s, kStart + 100s + kAsked * 1ns, 1ns), AnswerLimiter::kBurst + 1);
}

TEST(PeerLimitTest, SomeThousandASecondHoweverManyAsk) {
  test::FakeRandom random(1);
  PeerLimit limit;
  EXPECT_TRUE(limit.due(kStart)) << "the first at once";
  int count = 0;
  for (Time now = kStart; now < kStart + 1s; now += 10us) {
    if (!limit.due(now)) continue;
    limit.note(now, random);
    EXPECT_FALSE(limit.due(now + PeerLimit::kLeast - 1ns));
    EXPECT_TRUE(limit.due(now + PeerLimit::kMost));
    ++count;
  }
  EXPECT_GT(count, 900);
  EXPECT_LT(count, 1100);
}

TEST(AnsweredCallsTest, ACopyIsKnownUntilItsSenderMayHaveMissedTheAnswer) {
  AnsweredCalls calls;
  EXPECT_FALSE(calls.answered(kStart, 0)) << "nothing is kept";
  calls.note(kStart, 17);
  EXPECT_FALSE(calls.answered(kStart, 0)) << "no digest is taken for an empty place";
  EXPECT_FALSE(calls.answered(kStart, 18));
  EXPECT_TRUE(calls.answered(kStart + AnsweredCalls::kUntilAgain - 1ns, 17));
  EXPECT_FALSE(calls.answered(kStart + AnsweredCalls::kUntilAgain, 17));
}

TEST(AnsweredCallsTest, OfTwoInOnePlaceTheLaterIsKnown) {
  AnsweredCalls calls;
  calls.note(kStart, 17);
  calls.note(kStart, 17 + (std::uint64_t{1} << 40));
  EXPECT_FALSE(calls.answered(kStart, 17));
  EXPECT_TRUE(calls.answered(kStart, 17 + (std::uint64_t{1} << 40)));
}

/// A host that comes first whenever an interval ends would keep the peer out if it knew when that is.
TEST(PeerLimitTest, NoHostKnowsWhenTheNextIntervalEnds) {
  test::FakeRandom random(1);
  int soon = 0, late = 0;
  for (int i = 0; i < 100; ++i) {
    PeerLimit limit;
    limit.note(Time(1ms), random);
    soon += limit.due(Time(1ms) + 700us) ? 1 : 0;
    late += limit.due(Time(1ms) + 1300us) ? 0 : 1;
    EXPECT_FALSE(limit.due(Time(1ms) + PeerLimit::kLeast - 1ns));
    EXPECT_TRUE(limit.due(Time(1ms) + PeerLimit::kMost));
  }
  EXPECT_GT(soon, 10);
  EXPECT_GT(late, 10);
}

}  // namespace
}  // namespace cluster::engine
