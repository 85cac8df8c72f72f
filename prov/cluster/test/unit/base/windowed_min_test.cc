#include "base/windowed_min.h"

#include <gtest/gtest.h>

namespace cluster {
namespace {

TEST(WindowedMin, RemembersTheLeastAndForgetsItWithinItsMemory) {
  WindowedMin shortest(10s);
  EXPECT_FALSE(shortest.known());
  EXPECT_FALSE(shortest.sample(Time(1s), 30us));
  EXPECT_FALSE(shortest.sample(Time(2s), 20us));
  EXPECT_FALSE(shortest.sample(Time(3s), 50us));
  EXPECT_EQ(shortest.get(), 20us);
  EXPECT_TRUE(shortest.sample(Time(6s), 40us)) << "half of the memory is over";
  EXPECT_EQ(shortest.get(), 20us);
  EXPECT_TRUE(shortest.sample(Time(11s), 60us));
  EXPECT_EQ(shortest.get(), 40us);
}

}  // namespace
}  // namespace cluster
