// CRC32C: the values of RFC 3720 B.4, and each way that this processor offers against the tables, for
// all lengths, alignments and cuts. The narrower implementations are called by themselves: others depend on
// them.
#include "wire/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace cluster::wire {
namespace {

constexpr std::uint32_t kBefore = 0x1234567;  ///< what a piece in the middle continues

std::vector<std::byte> noise(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

std::uint32_t by(const fast::Implementation& way, std::uint32_t crc, ConstBytes data) {
  return ~way.update(~crc, data.data(), data.size());
}

std::uint32_t chosen_copy(std::uint32_t state, std::byte* to, const std::byte* at, std::size_t size) {
  return ~crc32c_copy(~state, to, {at, size});
}

std::uint32_t chosen(std::uint32_t state, const std::byte* at, std::size_t size) {
  return ~crc32c(~state, {at, size});
}

std::uint32_t tables(std::uint32_t state, const std::byte* at, std::size_t size) {
  return ~crc32c_portable(~state, {at, size});
}

class ChecksumWay : public testing::TestWithParam<fast::Implementation> {};

std::vector<fast::Implementation> all_ways() {
  std::vector<fast::Implementation> implementations{{"chosen", chosen, chosen_copy},
                                                    {"tables", tables, fast::copy_and_update<tables>}};
  for (const fast::Implementation& way : fast::implementations()) implementations.push_back(way);
  return implementations;
}

INSTANTIATE_TEST_SUITE_P(Each, ChecksumWay, testing::ValuesIn(all_ways()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(ChecksumWay, KnownValues) {
  const fast::Implementation way = GetParam();
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(by(way, 0, zeros), 0x8A9136AAu);
  const std::vector<std::byte> ones(32, std::byte{0xff});
  EXPECT_EQ(by(way, 0, ones), 0x62A8AB43u);
  std::vector<std::byte> ascending(32);
  for (std::size_t i = 0; i < 32; ++i) ascending[i] = static_cast<std::byte>(i);
  EXPECT_EQ(by(way, 0, ascending), 0x46DD794Eu);
  const std::vector<std::byte> descending(ascending.rbegin(), ascending.rend());
  EXPECT_EQ(by(way, 0, descending), 0x113FDB5Cu);
  EXPECT_EQ(by(way, 0, as_bytes("123456789", 9)), 0xE3069283u);
  EXPECT_EQ(by(way, 0, {}), 0u);
}

TEST_P(ChecksumWay, ReadCommandOfTheRfc) {
  std::vector<std::byte> command(48);
  const auto set = [&](std::size_t at, int value) { command[at] = static_cast<std::byte>(value); };
  set(0, 0x01);
  set(1, 0xC0);
  set(16, 0x14);
  set(22, 0x04);
  set(27, 0x14);
  set(31, 0x18);
  set(32, 0x28);
  set(40, 0x02);
  EXPECT_EQ(by(GetParam(), 0, command), 0xD9963A56u);
}

TEST_P(ChecksumWay, AgreesForAllLengthsAndAlignments) {
  constexpr std::size_t kAlignments = 64;
  constexpr std::size_t kLengthMax = 4100;
  const std::vector<std::byte> bytes = noise(kAlignments + kLengthMax);
  for (std::size_t from = 0; from < kAlignments; ++from) {
    const ConstBytes data = ConstBytes(bytes).subspan(from, kLengthMax);
    std::uint32_t expected = kBefore;
    for (std::size_t size = 0; size < kLengthMax; ++size) {
      ASSERT_EQ(by(GetParam(), kBefore, data.first(size)), expected) << from << " " << size;
      expected = crc32c_portable(expected, data.subspan(size, 1));
    }
  }
}

TEST_P(ChecksumWay, AgreesForLongData) {
  const std::vector<std::byte> bytes = noise(70'000);
  for (std::size_t size = 4000; size < bytes.size() - 8; size += 997) {
    const ConstBytes data = ConstBytes(bytes).subspan(size % 8, size);
    ASSERT_EQ(by(GetParam(), kBefore, data), crc32c_portable(kBefore, data)) << size;
  }
}

TEST_P(ChecksumWay, CopiesWhatItReadsAndNothingElse) {
  const std::vector<std::byte> bytes = noise(3000);
  for (std::size_t size = 0; size < 2900; ++size) {
    const ConstBytes data = ConstBytes(bytes).subspan(size % 67, size);
    const std::size_t shift = size % 61;
    std::vector<std::byte> target(shift + size + 64, std::byte{0x5a});
    std::vector<std::byte> expected = target;
    std::copy(data.begin(), data.end(), expected.begin() + static_cast<std::ptrdiff_t>(shift));
    ASSERT_EQ(~GetParam().copy(~kBefore, &target[shift], data.data(), size), crc32c_portable(kBefore, data))
        << size;
    ASSERT_EQ(target, expected) << size;
  }
}

/// Memory of exactly the length, so that a sanitizer sees each byte read outside.
TEST_P(ChecksumWay, ReadsNothingElse) {
  const std::vector<std::byte> bytes = noise(1500);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto exact = std::make_unique<std::byte[]>(size);
    if (size > 0) std::memcpy(exact.get(), bytes.data(), size);
    const ConstBytes data(exact.get(), size);
    ASSERT_EQ(by(GetParam(), 0, data), crc32c_portable(0, data)) << size;
  }
}

TEST_P(ChecksumWay, ContinuesWhereItStopped) {
  const std::vector<std::byte> bytes = noise(3000);
  const ConstBytes all(bytes);
  const std::uint32_t whole = crc32c_portable(0, all);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const ConstBytes rest = all.subspan(cut);
    const std::size_t next = rest.size() / 3;
    const std::uint32_t before = by(GetParam(), 0, all.first(cut));
    ASSERT_EQ(by(GetParam(), before, rest), whole) << cut;
    const std::uint32_t between = by(GetParam(), before, rest.first(next));
    ASSERT_EQ(by(GetParam(), between, rest.subspan(next)), whole) << cut << " " << next;
  }
}

}  // namespace
}  // namespace cluster::wire
