#include "os/patience.h"

#include <gtest/gtest.h>

namespace cluster::os {
namespace {

constexpr Time kBegin = Time{} + 5s;

TEST(PatienceTest, EndsWithoutProgress) {
  Patience patience(kBegin, 3);
  EXPECT_FALSE(patience.over(kBegin + Patience::kWithoutProgress - 1ns, 3));
  EXPECT_TRUE(patience.over(kBegin + Patience::kWithoutProgress, 3));
}

TEST(PatienceTest, LastsLongerWhileThereIsProgress) {
  Patience patience(kBegin, 3);
  EXPECT_FALSE(patience.over(kBegin + 15s, 4));
  EXPECT_FALSE(patience.over(kBegin + 15s + Patience::kWithoutProgress - 1ns, 4));
  EXPECT_TRUE(patience.over(kBegin + 15s + Patience::kWithoutProgress, 4));
}

TEST(PatienceTest, EndsInSpiteOfProgress) {
  Patience patience(kBegin, 0);
  for (std::uint64_t second = 1; second < 60; ++second)
    EXPECT_FALSE(patience.over(kBegin + std::chrono::seconds(second), second));
  EXPECT_TRUE(patience.over(kBegin + Patience::kMax, 60));
}

}  // namespace
}  // namespace cluster::os
