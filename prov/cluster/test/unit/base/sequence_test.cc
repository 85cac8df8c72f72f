// Serial number arithmetic at its limits: around the wrap and at the largest distances.
#include "base/sequence.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cluster {
namespace {

constexpr std::uint32_t kStarts[] = {0,          1,          0x7ffffffe, 0x7fffffff,
                                     0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};

TEST(Sequence, OrdersAcrossTheWrap) {
  for (const std::uint32_t start : kStarts) {
    const Sequence from{start};
    for (const std::uint32_t step : {1u, 2u, 1000u, 0x7fffffffu}) {
      const Sequence to = from + step;
      EXPECT_TRUE(from.before(to)) << start << " + " << step;
      EXPECT_TRUE(to.after(from)) << start << " + " << step;
      EXPECT_FALSE(to.before(from)) << start << " + " << step;
      EXPECT_EQ(to - from, static_cast<std::int32_t>(step));
      EXPECT_EQ(from - to, -static_cast<std::int32_t>(step));
    }
  }
}

TEST(Sequence, IsNeitherBeforeNorAfterItself) {
  for (const std::uint32_t start : kStarts) {
    const Sequence s{start};
    EXPECT_FALSE(s.before(s));
    EXPECT_FALSE(s.after(s));
    EXPECT_EQ(s - s, 0);
    EXPECT_EQ(s, Sequence{start});
  }
}

TEST(Sequence, CountsThroughTheWrap) {
  Sequence s{0xfffffffd};
  for (const std::uint32_t expected : {0xfffffffeu, 0xffffffffu, 0u, 1u}) EXPECT_EQ((++s).value, expected);
}

}  // namespace
}  // namespace cluster
