#include "base/siphash.h"

#include <gtest/gtest.h>

#include <array>

namespace cluster {
namespace {

/// The vectors of the reference implementation: the key is 00 01 ... 0f, the input 00 01 02 ...
TEST(SipHash, GivesTheReferenceValues) {
  const SipHash hash(0x0706050403020100, 0x0f0e0d0c0b0a0908);
  const std::array<std::uint64_t, 2> input{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  EXPECT_EQ(hash({}), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(hash(std::span(input).first(1)), 0x93f5f5799a932462u);
  EXPECT_EQ(hash(input), 0x3f2acc7f57c29bdbu);
}

}  // namespace
}  // namespace cluster
