// What is watched must be seen to change: a byte of content that looks like what was there before is no
// exception.
#include "sim/exposure.h"

#include <gtest/gtest.h>

namespace cluster::sim {
namespace {

TEST(Exposure, SeesEveryByteLandThatWasNotThere) {
  Exposure exposure({.writing = 64, .writable = true});
  Dice dice(1);
  // A single byte of content takes every value.
  for (MessageNumber content = 1; content <= 256; ++content) {
    const std::optional<std::size_t> slot = exposure.claim(1, dice);
    ASSERT_TRUE(slot.has_value());
    exposure.expect(*slot, content, 0);
    EXPECT_FALSE(exposure.landed(*slot));
    fill_content(content, {exposure.region().base + *slot, 1});
    EXPECT_TRUE(exposure.landed(*slot));
    exposure.seal(*slot);
    EXPECT_EQ(exposure.complaint(), "");
  }
}

TEST(Exposure, WhatWasNeverOrderedLeavesNoTrace) {
  Exposure exposure({.writing = 64, .writable = true});
  Dice dice(1);
  for (MessageNumber content = 1; content <= 256; ++content) {
    const std::optional<std::size_t> slot = exposure.claim(1, dice);
    ASSERT_TRUE(slot.has_value());
    exposure.expect(*slot, content, 0);
    exposure.disclaim(*slot);
    EXPECT_EQ(exposure.complaint(), "");
  }
}

}  // namespace
}  // namespace cluster::sim
