// How late the turns of an endpoint are.
#include <gtest/gtest.h>

#include "reliability/retransmission_timer.h"

namespace cluster::reliability {
namespace {

/// Timers that go off so late, one in each interval; the estimate after them.
Duration after(TurnDelay& delay, Time& now, int timers, Duration late, Duration interval) {
  for (int i = 0; i < timers; ++i) {
    now += interval;
    delay.observe(now, now - late);
  }
  return delay.get(now);
}

TEST(TurnDelay, DelaysOfASchedulerDoNotCount) {
  TurnDelay delay;
  Time now(1s);
  EXPECT_EQ(after(delay, now, 100, 11ms, 20ms), Duration{});
}

TEST(TurnDelay, DelaysThatRepeatAreSoonKnown) {
  TurnDelay delay;
  Time now(1s);
  EXPECT_GE(after(delay, now, 8, 700ms, 700ms), 600ms);
  EXPECT_LE(delay.get(now), 700ms);
  EXPECT_LE(after(delay, now, 100, 1h, 1h), 4s) << "nothing waits for ever";
}

TEST(TurnDelay, AStopOfTheProcessIsNoCrowd) {
  TurnDelay delay;
  Time now(1s);
  EXPECT_LE(after(delay, now, 1, 1h, 1h), 50ms);
}

TEST(TurnDelay, ItFallsWithTimersThatAreInTimeAndWithTime) {
  TurnDelay delay;
  Time now(1s);
  ASSERT_GE(after(delay, now, 20, 1s, 1s), 900ms);
  TurnDelay idle = delay;
  EXPECT_LE(after(delay, now, 40, 0ms, 1ms), 10ms);
  EXPECT_EQ(idle.get(now + 20s), Duration{});
}

}  // namespace
}  // namespace cluster::reliability
