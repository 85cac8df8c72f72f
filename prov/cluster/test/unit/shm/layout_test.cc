#include "shm/layout.h"

#include <gtest/gtest.h>

namespace cluster::shm {
namespace {

TEST(Layout, CutsTheDefaultRingIntoAThousandSlotsAndAMegabyte) {
  const Geometry geometry = Geometry::for_payload(1 << 20);
  EXPECT_EQ(geometry.slots, 1024u);
  EXPECT_EQ(geometry.arena_bytes, 1u << 20);
  EXPECT_EQ(geometry.arena_begin(), 4096u + 65536u);
  EXPECT_EQ(geometry.refusals_begin(), 4096u + 65536u + (1u << 20));
  EXPECT_EQ(geometry.total_bytes(), geometry.refusals_begin() + 8192u);
}

TEST(Layout, RoundsAnyWishIntoTheLimits) {
  for (const std::size_t wish : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}, std::size_t{3'000'000},
                                 std::size_t{1} << 26, std::size_t{1} << 40, ~std::size_t{0}}) {
    const Geometry geometry = Geometry::for_payload(wish);
    EXPECT_TRUE(geometry.valid()) << wish;
    EXPECT_EQ(geometry.arena_begin() % 4096, 0u) << wish;
    EXPECT_LE(geometry.payload_max() * 2, geometry.arena_bytes) << "or a block might wait forever";
  }
  EXPECT_GE(Geometry::for_payload(100'000).arena_bytes, 100'000u);
}

TEST(Layout, RefusesWhatIsNoPowerOfTwoOrOutOfLimits) {
  EXPECT_TRUE(Geometry({64, 65536}).valid());
  EXPECT_FALSE(Geometry({0, 65536}).valid());
  EXPECT_FALSE(Geometry({65, 65536}).valid());
  EXPECT_FALSE(Geometry({32, 65536}).valid());
  EXPECT_FALSE(Geometry({8192, 65536}).valid());
  EXPECT_FALSE(Geometry({64, 65537}).valid());
  EXPECT_FALSE(Geometry({64, 32768}).valid());
  EXPECT_FALSE(Geometry({64, 0x80000000u}).valid());
}

TEST(Layout, BlocksAreWholeLines) {
  EXPECT_EQ(block_bytes(0), 0u);
  EXPECT_EQ(block_bytes(1), 64u);
  EXPECT_EQ(block_bytes(64), 64u);
  EXPECT_EQ(block_bytes(65), 128u);
}

}  // namespace
}  // namespace cluster::shm
