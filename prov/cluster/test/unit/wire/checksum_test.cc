// CRC32C: the values of RFC 3720 B.4, the fast way against the tables for all lengths and alignments.
#include "wire/checksum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace cluster::wire {
namespace {

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

TEST(Checksum, KnownValues) {
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(crc32c(0, zeros), 0x8A9136AAu);
  const std::vector<std::byte> ones(32, std::byte{0xff});
  EXPECT_EQ(crc32c(0, ones), 0x62A8AB43u);
  std::vector<std::byte> ascending(32);
  for (std::size_t i = 0; i < 32; ++i) ascending[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(0, ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c(0, as_bytes("123456789", 9)), 0xE3069283u);
  EXPECT_EQ(crc32c_portable(0, as_bytes("123456789", 9)), 0xE3069283u);
  EXPECT_EQ(crc32c(0, {}), 0u);
}

TEST(Checksum, BothWaysAgreeForAllLengthsAndAlignments) {
  const std::vector<std::byte> bytes = noise(20'000);
  const auto compare = [&](std::size_t from, std::size_t size) {
    const ConstBytes part = ConstBytes(bytes).subspan(from, size);
    ASSERT_EQ(crc32c(0x1234567, part), crc32c_portable(0x1234567, part)) << from << " " << size;
  };
  for (std::size_t size = 0; size < 1600; ++size) compare(size % 17, size);
  for (std::size_t size = 6000; size < 20'000 - 8; size += 97) compare(size % 8, size);
}

TEST(Checksum, ContinuesWhereItStopped) {
  const std::vector<std::byte> bytes = noise(3000);
  const ConstBytes all(bytes);
  const std::uint32_t whole = crc32c(0, all);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    EXPECT_EQ(crc32c(crc32c(0, all.first(cut)), all.subspan(cut)), whole);
  }
}

}  // namespace
}  // namespace cluster::wire
