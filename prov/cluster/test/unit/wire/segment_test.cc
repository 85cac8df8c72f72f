// Segment headers: every kind with every allowed set of flags there and back, every prefix and every
// forbidden header refused, and a fuzz that replaces each byte by each value. Buffers are heap
// blocks of the exact size, so a sanitizer sees the first byte read too far.
#include "wire/segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "wire/atomic.h"

namespace cluster::wire {
namespace {

struct Rule {
  SegmentKind kind;
  std::uint8_t flags;  ///< allowed
  bool ordered;
  bool payload;
};

constexpr std::uint8_t kMessageFlags =
    segment_flag::kTagged | segment_flag::kData | segment_flag::kConfirm | segment_flag::kInternal;
constexpr std::uint8_t kRangeFlags = segment_flag::kData | segment_flag::kMore | segment_flag::kContinues;
constexpr Rule kRules[] = {
    {SegmentKind::eager, kMessageFlags, true, true},
    {SegmentKind::eager_first, kMessageFlags, true, true},
    {SegmentKind::eager_next, 0, true, true},
    {SegmentKind::announce,
     segment_flag::kTagged | segment_flag::kData | segment_flag::kAddress | segment_flag::kInternal, true,
     false},
    {SegmentKind::pull, segment_flag::kAddress, false, false},
    {SegmentKind::bulk, 0, false, true},
    {SegmentKind::done, 0, false, false},
    {SegmentKind::credit, 0, false, false},
    {SegmentKind::close, 0, false, false},
    {SegmentKind::write, kRangeFlags | segment_flag::kUnanswered, true, true},
    {SegmentKind::write_next, 0, true, true},
    {SegmentKind::write_announce, kRangeFlags, true, false},
    {SegmentKind::read, segment_flag::kData | segment_flag::kMore, true, false},
    {SegmentKind::failed, 0, false, false},
    {SegmentKind::read_failed, 0, false, false},
    {SegmentKind::placed, 0, false, false},
    {SegmentKind::atomic, segment_flag::kMore, true, true},
    {SegmentKind::fetched, 0, false, true},
    {SegmentKind::padding, 0, false, true},
    {SegmentKind::group_join, 0, false, false},
    {SegmentKind::group_start, 0, false, false},
    {SegmentKind::group_status, segment_flag::kMore, false, false},
    {SegmentKind::group_nak, 0, false, false},
    {SegmentKind::group_ask, 0, false, false},
    {SegmentKind::group_repair, 0, false, true},
    {SegmentKind::group_leave, 0, false, false},
    {SegmentKind::group_end, 0, false, false},
    {SegmentKind::expose, 0, false, false},
    {SegmentKind::exposed, segment_flag::kData, false, false},
    {SegmentKind::queue_pair, 0, false, false},
    {SegmentKind::expose_region, 0, true, false},
    {SegmentKind::device_over, segment_flag::kMore, false, false},
    {SegmentKind::new_queue_pair, 0, true, false},
};

/// All fields that a segment of this kind and flags carries, each with a value of its own.
Segment filled(const Rule& rule, std::uint8_t flags) {
  Segment segment;
  segment.kind = rule.kind;
  segment.flags = flags;
  segment.length = rule.payload ? 0xA1A2A3A4 : 0;
  using enum SegmentKind;
  const auto is_one_of = [&](std::initializer_list<SegmentKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), rule.kind) != kinds.end();
  };
  if (is_one_of({announce, pull, done, write, write_announce, failed, atomic, fetched, expose, exposed,
                 queue_pair, device_over, new_queue_pair}) ||
      segment.confirm()) {
    segment.id = 0xB1B2B3B4;
  }
  if (is_one_of({pull, bulk, read, read_failed, placed, expose, exposed, queue_pair, expose_region,
                 new_queue_pair}))
    segment.peer_id = 0xC1C2C3C4;
  if (is_one_of({pull, bulk, write, write_announce, read, placed, atomic, fetched, expose, exposed,
                 queue_pair, expose_region}))
    segment.offset = 0xD1D2D3D4D5D6D7D8;
  if (is_one_of({eager_first, announce, pull, credit, write, write_announce, read, failed, read_failed,
                 placed, expose, exposed, queue_pair, expose_region, device_over})) {
    segment.total = 0xE1E2E3E4E5E6E7E8;
  }
  if (is_one_of({write, write_announce, read, atomic, exposed, queue_pair, expose_region}))
    segment.key = 0x1112131415161718;
  if (of_group(rule.kind)) {
    segment.id = 0xB1B2B3B4;
    segment.key = 0x1112131415161718;
    if (rule.kind != group_end) segment.offset = 0xD1D2D3D4D5D6D7D8;
    if (is_one_of({group_join, group_start, group_status, group_nak})) segment.total = 0xE1E2E3E4E5E6E7E8;
    if (rule.kind == group_status) segment.peer_id = 0xC1C2C3C4;
  }
  if (rule.kind == atomic) {  // its lengths have to fit together
    segment.detail = AtomicCode{AtomicOp::cswap, AtomicType::uint64, true}.packed();
    segment.total = 40;
    segment.length = 80;
  }
  if (segment.tagged()) segment.tag = 0xF1F2F3F4F5F6F7F8;
  if (segment.has_data()) segment.data = 0x0102030405060708;
  if ((flags & segment_flag::kAddress) != 0) segment.address = 0x2122232425262728;
  return segment;
}

std::vector<std::byte> encoded(const Segment& segment) {
  std::vector<std::byte> bytes(encoded_size(segment));
  EXPECT_LE(bytes.size(), kSegmentHeaderMax);
  EXPECT_EQ(encode(segment, bytes.data()), bytes.size());
  return bytes;
}

void expect_equal(const Segment& a, const Segment& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.length, b.length);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.peer_id, b.peer_id);
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.total, b.total);
  EXPECT_EQ(a.tag, b.tag);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.detail, b.detail);
  EXPECT_EQ(a.address, b.address);
}

template <typename Visit>
void each_lawful_segment(Visit&& visit) {
  for (const Rule& rule : kRules) {
    for (unsigned flags = 0; flags <= segment_flag::kAll; ++flags) {
      if ((flags & ~unsigned{rule.flags}) == 0) visit(filled(rule, static_cast<std::uint8_t>(flags)));
    }
  }
}

TEST(Segment, RoundTrips) {
  each_lawful_segment([](const Segment& segment) {
    const auto bytes = encoded(segment);
    Segment out;
    EXPECT_EQ(decode(bytes, out), bytes.size());
    expect_equal(out, segment);
  });
}

TEST(Segment, LeavesNothingOfAnEarlierValue) {
  Segment out = filled(kRules[0], kMessageFlags);
  Segment plain;
  plain.kind = SegmentKind::eager_next;
  EXPECT_EQ(decode(encoded(plain), out), 8u);
  expect_equal(out, plain);
}

TEST(Segment, OnlyAtomicsHaveADetail) {
  constexpr std::size_t kDetailAt = 2;
  each_lawful_segment([](const Segment& segment) {
    if (segment.kind == SegmentKind::atomic) return;
    auto bytes = encoded(segment);
    bytes[kDetailAt] = std::byte{1};
    Segment out;
    EXPECT_EQ(decode(bytes, out), 0u);
  });
}

TEST(Segment, IgnoresWhatFollows) {
  auto bytes = encoded(filled(kRules[0], kMessageFlags));
  const std::size_t size = bytes.size();
  bytes.resize(size + 9, std::byte{0xFF});
  Segment out;
  EXPECT_EQ(decode(bytes, out), size);
}

TEST(Segment, RefusesEveryPrefix) {
  each_lawful_segment([](const Segment& segment) {
    const auto bytes = encoded(segment);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::unique_ptr<std::byte[]> cut(new std::byte[size]);
      std::copy_n(bytes.begin(), size, cut.get());
      Segment out;
      EXPECT_EQ(decode({cut.get(), size}, out), 0u) << "kind " << int(segment.kind) << " prefix " << size;
    }
  });
}

TEST(Segment, RefusesUnknownKindsFlagsAndPayloads) {
  for (unsigned kind = 0; kind < 256; ++kind) {
    for (unsigned flags = 0; flags < 256; ++flags) {
      for (const bool payload : {false, true}) {
        std::vector<std::byte> bytes(kSegmentHeaderMax);
        bytes[0] = std::byte(kind);
        bytes[1] = std::byte(flags);
        bytes[4] = std::byte{payload};
        if (kind == static_cast<unsigned>(SegmentKind::atomic)) continue;  // never that simple
        bool lawful = false;
        for (const Rule& rule : kRules) {
          lawful = lawful || (static_cast<unsigned>(rule.kind) == kind &&
                              (flags & ~unsigned{rule.flags}) == 0 && (rule.payload || !payload));
        }
        Segment out;
        ASSERT_EQ(decode(bytes, out) != 0, lawful) << "kind " << kind << " flags " << flags;
      }
    }
  }
}

TEST(Segment, RefusesReservedBytes) {
  for (const std::size_t at : {2u, 3u}) {
    auto bytes = encoded(filled(kRules[0], 0));
    bytes[at] = std::byte{1};
    Segment out;
    EXPECT_EQ(decode(bytes, out), 0u);
  }
}

TEST(Segment, RefusesAtomicsThatDoNotExist) {
  std::size_t lawful = 0;
  for (unsigned detail = 0; detail < 65536; ++detail) {
    AtomicCode code;
    const bool exists = AtomicCode::unpack(static_cast<std::uint16_t>(detail), code);
    if (exists) {
      ++lawful;
      EXPECT_EQ(code.packed(), detail);
    }
    for (const unsigned total : {0u, 1u, 32u, 100u, 128u, 4096u}) {
      for (const unsigned length : {0u, 1u, 32u, 64u, 100u, 128u, 256u, 4096u}) {
        Segment segment;
        segment.kind = SegmentKind::atomic;
        segment.detail = static_cast<std::uint16_t>(detail);
        segment.total = total;
        segment.length = length;
        const bool fits = exists && total > 0 && total % size_of(code.type) == 0 &&
                          length == code.operands() * std::min(total, 128u);
        Segment out;
        ASSERT_EQ(decode(encoded(segment), out) != 0, fits) << detail << " " << total << " " << length;
      }
    }
  }
  // Eleven with and without an answer; read and seven that compare with one.
  EXPECT_EQ(lawful, kAtomicTypes * (2 * 11 + 8));
}

TEST(Segment, WhateverIsAcceptedEncodesToTheSameBytes) {
  each_lawful_segment([](const Segment& segment) {
    const auto original = encoded(segment);
    for (std::size_t at = 0; at < original.size(); ++at) {
      for (unsigned value = 0; value < 256; ++value) {
        auto bytes = original;
        bytes[at] = std::byte(value);
        Segment out;
        const std::size_t size = decode(bytes, out);
        ASSERT_LE(size, bytes.size());
        if (size == 0) continue;
        bytes.resize(size);
        ASSERT_EQ(encoded(out), bytes) << "kind " << int(segment.kind) << " byte " << at << " = " << value;
      }
    }
  });
}

TEST(Segment, OnlyMessagesAreOrdered) {
  for (const Rule& rule : kRules) EXPECT_EQ(ordered(rule.kind), rule.ordered) << int(rule.kind);
}

TEST(Segment, LiesOnTheWireAsDocumented) {
  Segment segment;
  segment.kind = SegmentKind::eager;
  segment.flags = segment_flag::kTagged;
  segment.length = 0x01020304;
  segment.tag = 0x1112131415161718;
  const std::vector<unsigned> expected = {1,    1,    0,    0,    0x04, 0x03, 0x02, 0x01,
                                          0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11};
  std::vector<unsigned> seen;
  for (const std::byte byte : encoded(segment)) seen.push_back(std::to_integer<unsigned>(byte));
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace cluster::wire
