#include "network/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace cluster::network {
namespace {

constexpr Time at(int microsecond) { return Time{} + std::chrono::microseconds(microsecond); }

TEST(TimerHeap, AnEmptyHeapHasNothingDue) {
  TimerHeap timers;
  EXPECT_EQ(timers.next(), kNever);
  EXPECT_EQ(timers.pop_due(at(1'000'000)), nullptr);
}

TEST(TimerHeap, DueTimersComeInTheOrderOfTime) {
  TimerHeap timers;
  std::array<Timer, 100> all;
  for (std::size_t i = 0; i < all.size(); ++i) timers.schedule(all[i], at(static_cast<int>(i * 37 % 100)));
  EXPECT_EQ(timers.next(), at(0));
  Time last{};
  int due = 0;
  while (const Timer* timer = timers.pop_due(at(49))) {
    EXPECT_EQ(timer->at, kNever) << "it is not planned any more";
    ++due;
  }
  EXPECT_EQ(due, 50);
  EXPECT_EQ(timers.size(), 50u);
  for (int now = 50; now < 100; ++now) {
    EXPECT_EQ(timers.next(), at(now));
    EXPECT_GT(timers.next(), last);
    last = timers.next();
    ASSERT_NE(timers.pop_due(at(now)), nullptr);
  }
}

TEST(TimerHeap, TheEarlierMomentHolds) {
  TimerHeap timers;
  Timer timer;
  timers.schedule(timer, at(10));
  timers.schedule(timer, at(20));
  EXPECT_EQ(timers.next(), at(10));
  timers.schedule(timer, at(5));
  EXPECT_EQ(timers.next(), at(5));
  EXPECT_EQ(timers.size(), 1u);
}

TEST(TimerHeap, ACancelledTimerDoesNotComeAndTheOthersDo) {
  for (std::size_t gone = 0; gone < 20; ++gone) {
    TimerHeap timers;
    std::array<Timer, 20> all;
    for (std::size_t i = 0; i < all.size(); ++i) timers.schedule(all[i], at(static_cast<int>(i * 7 % 20)));
    timers.cancel(all[gone]);
    timers.cancel(all[gone]);
    Time last{};
    std::size_t came = 0;
    for (Time next = timers.next(); const Timer* timer = timers.pop_due(at(100)); next = timers.next()) {
      EXPECT_NE(timer, &all[gone]);
      EXPECT_GE(next, last);
      last = next;
      ++came;
    }
    EXPECT_EQ(came, all.size() - 1);
  }
}

TEST(TimerHeap, TheOrderSurvivesAnySequenceOfChanges) {
  TimerHeap timers;
  std::array<Timer, 40> all;
  std::mt19937 random(1);
  const auto earliest = [&all] {
    Time next = kNever;
    for (const Timer& timer : all) next = std::min(next, timer.at);
    return next;
  };
  for (int step = 0; step < 20'000; ++step) {
    Timer& timer = all[random() % all.size()];
    switch (random() % 4) {
      case 0: timers.cancel(timer); break;
      case 1: timers.pop_due(earliest()); break;
      default: timers.schedule(timer, at(static_cast<int>(random() % 1'000))); break;
    }
    ASSERT_EQ(timers.next(), earliest()) << step;
  }
}

}  // namespace
}  // namespace cluster::network
