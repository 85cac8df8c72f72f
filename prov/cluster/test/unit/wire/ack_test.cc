// The ack block: runs of sequences there and back, also across the wrap; every prefix, disorder and
// overlap refused; a fuzz over every byte.
#include "wire/ack.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace cluster::wire {
namespace {

constexpr std::uint32_t kBases[] = {0, 1000, 0x7ffffff0, 0xfffffff0, 0xffffffff};

Ack sample(Sequence base, std::size_t count) {
  Ack ack;
  ack.spurious = 0xD1D2D3D4;
  ack.count = count;
  Sequence at = base;
  for (std::size_t i = 0; i < count; ++i) {
    ack.ranges[i].first = at + static_cast<std::uint32_t>(1 + i % 3);
    ack.ranges[i].end = ack.ranges[i].first + static_cast<std::uint32_t>(1 + i % 4);
    at = ack.ranges[i].end;
  }
  return ack;
}

std::vector<std::byte> encoded(const Ack& ack) {
  std::vector<std::byte> bytes(ack_block_size(ack.count));
  EXPECT_EQ(encode(ack, bytes.data()), bytes.size());
  return bytes;
}

void expect_equal(const Ack& a, const Ack& b) {
  EXPECT_EQ(a.spurious, b.spurious);
  ASSERT_EQ(a.count, b.count);
  for (std::size_t i = 0; i < a.count; ++i) EXPECT_EQ(a.ranges[i], b.ranges[i]);
}

TEST(Ack, RoundTrips) {
  for (const std::uint32_t base : kBases) {
    for (std::size_t count = 0; count <= kAckRangesMax; ++count) {
      const auto bytes = encoded(sample({base}, count));
      Ack out;
      EXPECT_EQ(decode(bytes, {base}, out), bytes.size());
      expect_equal(out, sample({base}, count));
    }
  }
}

TEST(Ack, RefusesEveryPrefix) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kAckRangesMax}) {
    const auto bytes = encoded(sample({5}, count));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::unique_ptr<std::byte[]> cut(new std::byte[size]);
      std::copy_n(bytes.begin(), size, cut.get());
      Ack out;
      EXPECT_EQ(decode({cut.get(), size}, {5}, out), 0u) << count << " ranges, prefix " << size;
    }
  }
}

TEST(Ack, RefusesTooManyRanges) {
  for (const unsigned count : {33u, 255u, 65535u}) {
    std::vector<std::byte> bytes(ack_block_size(count));
    bytes[4] = std::byte(count);
    bytes[5] = std::byte(count >> 8);
    Ack out;
    EXPECT_EQ(decode(bytes, {0}, out), 0u) << count;
  }
}

TEST(Ack, RefusesDisorder) {
  const Sequence base{0xfffffffa};
  const auto refused = [&](std::vector<std::pair<std::uint32_t, std::uint32_t>> offsets) {
    Ack ack;
    for (const auto& [first, end] : offsets) ack.ranges[ack.count++] = {base + first, base + end};
    const auto bytes = encoded(ack);
    Ack out;
    return decode(bytes, base, out) == 0;
  };
  EXPECT_FALSE(refused({{1, 2}, {3, 9}}));
  EXPECT_TRUE(refused({{0, 2}})) << "`ack` itself cannot have arrived";
  EXPECT_TRUE(refused({{0u - 5, 0u - 2}})) << "before `ack`";
  EXPECT_TRUE(refused({{3, 3}})) << "empty";
  EXPECT_TRUE(refused({{5, 3}})) << "backwards";
  EXPECT_TRUE(refused({{5, 9}, {1, 3}})) << "descending";
  EXPECT_TRUE(refused({{1, 5}, {4, 9}})) << "overlapping";
  EXPECT_TRUE(refused({{1, 5}, {5, 9}})) << "touching";
  constexpr std::uint32_t kQuarter = 1u << 30;
  EXPECT_TRUE(refused({{kQuarter, 2 * kQuarter + 1}})) << "ends beyond half the sequence space";
  EXPECT_TRUE(refused({{kQuarter, kQuarter + 1}, {2 * kQuarter + 1, 2 * kQuarter + 2}}))
      << "as the sum of steps";
  EXPECT_TRUE(refused({{kQuarter, kQuarter + 1}, {3 * kQuarter - 1, 4 * kQuarter + 9}})) << "once round";
}

TEST(Ack, WhateverIsAcceptedIsAscendingAndComesBackTheSame) {
  const Sequence base{0xfffffff8};
  const auto original = encoded(sample(base, 6));
  for (std::size_t at = 0; at < original.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      auto bytes = original;
      bytes[at] = std::byte(value);
      Ack first;
      const std::size_t size = decode(bytes, base, first);
      ASSERT_LE(size, bytes.size());
      if (size == 0) continue;
      Sequence last = base;
      for (std::size_t i = 0; i < first.count; ++i) {
        ASSERT_TRUE(first.ranges[i].first.after(last));
        ASSERT_TRUE(first.ranges[i].end.after(first.ranges[i].first));
        last = first.ranges[i].end;
      }
      Ack second;
      ASSERT_NE(decode(encoded(first), base, second), 0u);
      expect_equal(first, second);
    }
  }
}

}  // namespace
}  // namespace cluster::wire
