// Stamps of the kernel on the time line of an engine, though the clocks drift and one is set.
#include <gtest/gtest.h>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

struct TwoClocks final : Clock {
  Time now() override { return Time(1s); }
  Duration realtime_offset() override {
    ++readings;
    return ahead;
  }
  std::uint64_t ticks() override { return count; }

  Duration ahead = 100h;
  std::uint64_t count = 12345;
  int readings = 0;
};

TEST(ArrivalClock, KnowsHowFarStampsAreAheadAndLooksOnceInAWhile) {
  TwoClocks clocks;
  ArrivalClock arrivals(clocks);
  for (int i = 0; i < 10; ++i) arrivals.refresh();
  EXPECT_EQ(arrivals.time_of(100h + 5us), Time(5us));
  EXPECT_EQ(clocks.readings, 1);
  clocks.ahead = 99h;
  clocks.count += 1'000'000;
  arrivals.refresh();
  EXPECT_EQ(arrivals.time_of(100h + 5us), Time(5us)) << "not yet";
  clocks.count += 100'000;
  arrivals.refresh();
  EXPECT_EQ(arrivals.time_of(99h + 7us), Time(7us));
}

TEST(ArrivalClock, LooksAgainWhenTicksJumpBack) {
  TwoClocks clocks;
  ArrivalClock arrivals(clocks);
  arrivals.refresh();
  clocks.ahead = 99h;
  clocks.count = 5;
  arrivals.refresh();
  EXPECT_EQ(arrivals.time_of(99h), Time{});
}

}  // namespace
}  // namespace cluster::os
