#include "network/answer_limiter.h"

#include <gtest/gtest.h>

#include "network/answered_calls.h"
#include "network/peer_limit.h"
#include "support/fake_environment.h"

namespace cluster::network {
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

/// So many are asked for in each interval, spread evenly; how many are done on average.
std::uint64_t done_in_an_interval(std::int64_t asked) {
  constexpr std::int64_t kIntervals = 200;
  test::FakeRandom random(1);
  PeerLimit limit;
  std::uint64_t done = 0;
  for (std::int64_t i = 0; i < kIntervals * asked; ++i) {
    const Time now = kStart + PeerLimit::kInterval * i / asked;
    if (!limit.due(now, random)) continue;
    limit.note(now);
    ++done;
  }
  return done / kIntervals;
}

TEST(PeerLimitTest, GrowsMuchLessThanWhatIsAskedFor) {
  EXPECT_EQ(done_in_an_interval(PeerLimit::kSure), PeerLimit::kSure);
  EXPECT_GE(done_in_an_interval(32), 29u) << "more is a flood";
  EXPECT_LE(done_in_an_interval(250), 80u) << "50,000 a second, where none are thinned out";
}

/// A host that asks first whenever an interval begins would else keep the peer out.
TEST(PeerLimitTest, OneIsDoneInTwoAfterAllThatIsNoFlood) {
  test::FakeRandom random(1);
  constexpr int kTimes = 1000;
  int done = 0;
  for (int i = 0; i < kTimes; ++i) {
    PeerLimit limit;
    for (int asked = 0; asked < 32; ++asked) {
      if (limit.due(kStart, random)) limit.note(kStart);
    }
    done += limit.due(kStart, random) ? 1 : 0;
  }
  EXPECT_GT(done, kTimes / 2);
  EXPECT_LT(done, kTimes) << "there is a limit";
}

}  // namespace
}  // namespace cluster::network
