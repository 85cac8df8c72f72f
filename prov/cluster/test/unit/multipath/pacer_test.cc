#include "multipath/pacer.h"

#include <gtest/gtest.h>

namespace cluster::multipath {
namespace {

TEST(Pacer, TheRestFollowsABurstAtThePace) {
  Pacer pacer(1us, 32);
  const Time begin(1ms);
  for (int i = 0; i < 32; ++i) pacer.on_sent(begin);
  EXPECT_EQ(pacer.allowance(begin), 0u);
  EXPECT_EQ(pacer.allowance(begin + 5us), 5u);
  const Time next = pacer.ready_at(8);
  EXPECT_EQ(next, begin + 8us) << "woken once for several frames";
  EXPECT_EQ(pacer.allowance(next), 8u);
  EXPECT_EQ(pacer.allowance(begin + 1s), 32u) << "what was not used is not saved up";
}

TEST(Pacer, WithoutAPaceABurstMayAlwaysGo) {
  Pacer pacer(0ns, 32);
  pacer.on_sent(Time(1ms), 100);
  EXPECT_EQ(pacer.allowance(Time(1ms)), 32u);
  EXPECT_LE(pacer.ready_at(8), Time(1ms));
}

}  // namespace
}  // namespace cluster::multipath
