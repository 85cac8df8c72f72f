#include "shm/copy.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cluster::shm {
namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 13 + (i >> 8));
  return bytes;
}

TEST(Copy, CopiesExactlyTheRangeAtEveryDistance) {
  const std::vector<std::byte> source = pattern(3 * 4096);
  alignas(64) static std::array<std::byte, 5 * 4096> target;
  for (const std::size_t size : {0u, 1u, 48u, 2047u, 2048u, 2049u, 4096u, 6145u, 8192u}) {
    for (std::size_t shift = 0; shift < 64; ++shift) {
      target.fill(std::byte{0xee});
      copy(target.data() + 64 + shift, source.data() + 64, size);
      ASSERT_EQ(target[63 + shift], std::byte{0xee});
      ASSERT_EQ(target[64 + shift + size], std::byte{0xee});
      ASSERT_EQ(std::memcmp(target.data() + 64 + shift, source.data() + 64, size), 0) << size << " " << shift;
    }
  }
}

TEST(Copy, GathersAWindowOverSlicesEmptyOnesIncluded) {
  const std::vector<std::byte> source = pattern(10'000);
  const ConstBytes all = source;
  const std::array<ConstBytes, 5> slices{all.subspan(0, 10), ConstBytes{}, all.subspan(10, 3990),
                                         all.subspan(4000, 0), all.subspan(4000)};
  std::vector<std::byte> target(10'000);
  for (const auto& [offset, length] :
       {std::pair{0u, 10'000u}, {5u, 5u}, {5u, 6u}, {10u, 3990u}, {3999u, 2u}, {9999u, 1u}, {10'000u, 0u}}) {
    std::fill(target.begin(), target.end(), std::byte{0xee});
    copy(target.data(), Gather{slices, offset, length});
    EXPECT_EQ(std::memcmp(target.data(), source.data() + offset, length), 0) << offset << " " << length;
    if (length < target.size()) {
      EXPECT_EQ(target[length], std::byte{0xee});
    }
  }
}

}  // namespace
}  // namespace cluster::shm
