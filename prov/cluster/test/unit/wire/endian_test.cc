// Wire integers: byte order pinned, every alignment, no padding.
#include "wire/endian.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cluster::wire {
namespace {

template <typename Field>
std::vector<unsigned> bytes_of(const Field& field) {
  std::array<std::uint8_t, sizeof(Field)> bytes;
  std::memcpy(bytes.data(), &field, sizeof field);
  return {bytes.begin(), bytes.end()};
}

TEST(Endian, LowestByteFirst) {
  EXPECT_EQ(bytes_of(Le16(0x1234)), (std::vector<unsigned>{0x34, 0x12}));
  EXPECT_EQ(bytes_of(Le32(0x12345678)), (std::vector<unsigned>{0x78, 0x56, 0x34, 0x12}));
  EXPECT_EQ(bytes_of(Le64(0x0102030405060708)), (std::vector<unsigned>{8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(Endian, ReadsBackWhatWasWritten) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t value = std::uint64_t{1} << bit;
    EXPECT_EQ(std::uint64_t{Le64(value)}, value);
    EXPECT_EQ(std::uint32_t{Le32(static_cast<std::uint32_t>(value))}, static_cast<std::uint32_t>(value));
    EXPECT_EQ(std::uint16_t{Le16(static_cast<std::uint16_t>(value))}, static_cast<std::uint16_t>(value));
  }
}

TEST(Endian, HasNoAlignmentAndNoPadding) {
  struct Mixed {
    std::uint8_t a;
    Le64 b;
    Le16 c;
    Le32 d;
  };
  static_assert(sizeof(Mixed) == 15 && alignof(Mixed) == 1);
  Mixed mixed{};
  mixed.b = ~std::uint64_t{0};
  EXPECT_EQ(mixed.a, 0);
  EXPECT_EQ(std::uint16_t{mixed.c}, 0);
  EXPECT_EQ(std::uint64_t{mixed.b}, ~std::uint64_t{0});
}

}  // namespace
}  // namespace cluster::wire
