// Every byte of content must be seen to arrive, even if it looks like the byte that was there before.
#include "sim/watched_region.h"

#include <gtest/gtest.h>

namespace cluster::sim {
namespace {

TEST(WatchedRegion, SeesEveryByteLandThatWasNotThere) {
  WatchedRegion region_watch({.writing = 64, .writable = true});
  SeededRandom random(1);
  // The single byte of content takes every value.
  for (MessageNumber content = 1; content <= 256; ++content) {
    const std::optional<std::size_t> slot = region_watch.allocate_slot(1, random);
    ASSERT_TRUE(slot.has_value());
    region_watch.expect(*slot, content, 0);
    EXPECT_FALSE(region_watch.landed(*slot));
    fill_content(content, {region_watch.region().base + *slot, 1});
    EXPECT_TRUE(region_watch.landed(*slot));
    region_watch.seal(*slot);
    EXPECT_EQ(region_watch.violation(), "");
  }
}

TEST(WatchedRegion, WhatWasNeverOrderedLeavesNoTrace) {
  WatchedRegion region_watch({.writing = 64, .writable = true});
  SeededRandom random(1);
  for (MessageNumber content = 1; content <= 256; ++content) {
    const std::optional<std::size_t> slot = region_watch.allocate_slot(1, random);
    ASSERT_TRUE(slot.has_value());
    region_watch.expect(*slot, content, 0);
    region_watch.release_slot(*slot);
    EXPECT_EQ(region_watch.violation(), "");
  }
}

}  // namespace
}  // namespace cluster::sim
