#include "multipath/pacer.h"

#include <gtest/gtest.h>

namespace cluster::multipath {
namespace {

TEST(Pacer, ASmallWindowLeavesAtOnceAndALargeOneInQuarters) {
  Pacer pacer;
  pacer.pace(100us, 16);
  EXPECT_EQ(pacer.allowance(Time(0us)), 32u);
  pacer.pace(100us, 256);
  EXPECT_EQ(pacer.allowance(Time(0us)), 64u);
  EXPECT_EQ(pacer.ready_after(Time(0us)), kNever) << "nothing to wait for";
}

TEST(Pacer, TheRestFollowsWithinFourFifthsOfARoundTrip) {
  Pacer pacer;
  pacer.pace(160us, 128);  // a frame each microsecond, 32 at once
  const Time begin(1ms);
  for (int i = 0; i < 32; ++i) pacer.on_sent(begin);
  EXPECT_EQ(pacer.allowance(begin), 0u);
  EXPECT_EQ(pacer.allowance(begin + 5us), 5u);
  const Time next = pacer.ready_after(begin);
  EXPECT_EQ(next, begin + 8us) << "woken once for several frames";
  EXPECT_EQ(pacer.allowance(next), 8u);
  EXPECT_EQ(pacer.ready_after(next), kNever);
  EXPECT_EQ(pacer.allowance(begin + 1s), 32u) << "what was not used is not saved up";
}

}  // namespace
}  // namespace cluster::multipath
