#include "os/processor_yield.h"

#include <gtest/gtest.h>

namespace cluster::os {
namespace {

TEST(ProcessorsCrowded, IfMoreThreadsWantToRunThanThereAreProcessors) {
  EXPECT_FALSE(is_crowded("0.20 0.18 0.12 1/80 11206\n", 2));
  EXPECT_FALSE(is_crowded("17.14 6.54 2.48 2/411 11206\n", 2));
  EXPECT_TRUE(is_crowded("0.20 0.18 0.12 3/80 11206\n", 2));
}

TEST(ProcessorsCrowded, IfTheKernelDoesNotSay) {
  EXPECT_TRUE(is_crowded("", 2));
  EXPECT_TRUE(is_crowded("0.20 0.18", 2));
}

}  // namespace
}  // namespace cluster::os
