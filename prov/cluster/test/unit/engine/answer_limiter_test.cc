#include "engine/answer_limiter.h"

#include <gtest/gtest.h>

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

TEST(AnswerLimiterTest, APeerIsAnsweredOnceInAnIntervalHoweverManyAsk) {
  Time answered{};
  int count = 0;
  for (Time now = kStart; now < kStart + 1s; now += 10us) count += AnswerLimiter::admits_peer(now, answered) ? 1 : 0;
  EXPECT_EQ(count, 1s / AnswerLimiter::kIntervalOfPeer);
}

}  // namespace
}  // namespace cluster::engine
