// Frames that continue each other: the view finds all of them and accepts none that differs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "wire/admit.h"

namespace cluster::wire {
namespace {

using Page = std::vector<std::byte>;

constexpr std::size_t kPart = 100;

struct Shape {
  SegmentKind kind = SegmentKind::bulk;
  std::uint8_t flags = frame_flag::kSequenced | frame_flag::kAcknowledges;
  std::uint32_t sequence = 0xfffffffd;  // wraps around on the way
  std::uint32_t transmission = 0xfffffffe;
  std::uint32_t ack = 4;
  std::uint32_t session = 0xABCD;
  std::uint32_t peer_id = 5;
  std::uint64_t offset = 0xfffffff0;
  std::size_t part = kPart;
};

Page frame(const Shape& shape, std::uint32_t i) {
  Segment segment;
  segment.kind = shape.kind;
  segment.length = static_cast<std::uint32_t>(shape.part);
  if (shape.kind == SegmentKind::bulk) segment.peer_id = shape.peer_id;
  if (shape.kind == SegmentKind::bulk) segment.offset = shape.offset + i * shape.part;
  FrameHeader header{};
  Page page(sizeof header + encoded_size(segment) + shape.part);
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = static_cast<std::uint8_t>(FrameKind::flow);
  header.flags = shape.flags;
  header.length = static_cast<std::uint16_t>(page.size());
  header.session = shape.session;
  header.sequence = shape.sequence + i;
  header.transmission = shape.transmission + i;
  header.ack = shape.ack;
  header.largest_acked = 3;
  std::memcpy(page.data(), &header, sizeof header);
  encode(segment, &page[sizeof header]);
  for (std::size_t k = 0; k < shape.part; ++k)
    page[page.size() - shape.part + k] = static_cast<std::byte>(i + 3 * k);
  const ConstBytes whole = page;
  header.checksum = frame_checksum({&whole, 1});
  std::memcpy(page.data(), &header, sizeof header);
  return page;
}

Page frames(const Shape& shape, std::uint32_t count) {
  Page page;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Page one = frame(shape, i);
    page.insert(page.end(), one.begin(), one.end());
  }
  return page;
}

/// How many frames continue the first, which must be admitted, itself included.
std::size_t count_of(const Page& page) {
  FrameView first;
  EXPECT_EQ(admit(page, first), Refusal::none);
  RunView run;
  return match_run(page, first, run) && check_run(run, {}) ? run.count : 1;
}

TEST(RunView, FindsAllThatContinueTheFirst) {
  for (const SegmentKind kind : {SegmentKind::bulk, SegmentKind::eager_next}) {
    Shape shape;
    shape.kind = kind;
    if (kind == SegmentKind::eager_next) shape.flags |= frame_flag::kOrdered;
    const Page page = frames(shape, 7);
    FrameView first;
    ASSERT_EQ(admit(page, first), Refusal::none);
    RunView run;
    ASSERT_TRUE(match_run(page, first, run) && check_run(run, {}));
    EXPECT_EQ(run.count, 7u);
    EXPECT_EQ(run.size(), 7 * kPart);
    EXPECT_EQ(run.segment.kind, kind);
    for (std::uint32_t i = 0; i < 7; ++i) {
      const Page one = frame(shape, i);
      ASSERT_EQ(run.payload(i).size(), kPart);
      EXPECT_EQ(std::memcmp(run.payload(i).data(), &one[one.size() - kPart], kPart), 0);
    }
  }
}

TEST(RunView, AFrameThatIsCutOffIsNotRead) {
  const Page page = frames({}, 3);
  for (std::size_t size = page.size() / 3; size <= page.size(); ++size) {
    const Page exact(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(count_of(exact), size / (page.size() / 3)) << size;
  }
}

TEST(RunView, EveryFlippedBitEndsTheRun) {
  const Page good = frames({}, 3);
  const std::size_t length = good.size() / 3;
  for (std::size_t bit = length * 8; bit < 3 * length * 8; ++bit) {
    Page page = good;
    page[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_EQ(count_of(page), bit / 8 / length) << "bit " << bit;
  }
}

/// Payloads, one behind the other, of a run with this page; `count` is set to the number of frames.
Page stored_from(const Page& page, std::size_t& count) {
  FrameView first;
  EXPECT_EQ(admit(page, first), Refusal::none);
  RunView run;
  EXPECT_TRUE(match_run(page, first, run));
  Page place(run.size());
  check_run(run, place);
  EXPECT_TRUE(run.stored);
  count = run.count;
  place.resize(run.size());
  return place;
}

TEST(RunView, PayloadsAreStoredWhileTheyAreChecked) {
  for (const std::size_t part : {1u, 63u, 100u, 255u, 256u, 320u, 1000u, 1417u}) {
    Shape shape;
    shape.part = part;
    const Page page = frames(shape, 5);
    std::size_t count = 0;
    const Page stored = stored_from(page, count);
    ASSERT_EQ(count, 5u) << part;
    for (std::uint32_t i = 0; i < 5; ++i) {
      const Page one = frame(shape, i);
      EXPECT_TRUE(std::equal(one.end() - static_cast<std::ptrdiff_t>(part), one.end(), &stored[i * part]))
          << part;
    }
  }
}

TEST(RunView, ADamagedPayloadEndsTheRunThatIsStored) {
  const Page good = frames({}, 3);
  const std::size_t length = good.size() / 3;
  for (std::size_t byte = 2 * length - kPart; byte < 2 * length; ++byte) {
    Page page = good;
    page[byte] ^= std::byte{1};
    std::size_t count = 0;
    stored_from(page, count);
    ASSERT_EQ(count, 1u) << byte;
  }
}

TEST(RunView, APlaceThatIsTooSmallIsNotUsed) {
  const Page page = frames({}, 3);
  FrameView first;
  ASSERT_EQ(admit(page, first), Refusal::none);
  RunView run;
  ASSERT_TRUE(match_run(page, first, run));
  Page place(run.size() - 1);
  EXPECT_TRUE(check_run(run, place));
  EXPECT_FALSE(run.stored);
  EXPECT_EQ(place, Page(place.size()));
}

TEST(RunView, WhatIsOtherwiseWithARightChecksumEndsTheRun) {
  const auto ends = [](auto&& change, std::uint32_t number = 2) {
    Shape other;
    change(other);
    Page page = frames({}, 2);
    const Page next = frame(other, number);
    page.insert(page.end(), next.begin(), next.end());
    return count_of(page) == 2;
  };
  EXPECT_FALSE(ends([](Shape&) {})) << "it continues";
  EXPECT_TRUE(ends([](Shape& s) { s.flags |= frame_flag::kAckNow; }));
  EXPECT_TRUE(ends([](Shape& s) { s.flags = frame_flag::kSequenced; }));
  EXPECT_TRUE(ends([](Shape& s) { s.sequence += 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.transmission -= 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.ack += 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.session += 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.peer_id += 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.offset += 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.part -= 1; }));
  EXPECT_TRUE(ends([](Shape& s) { s.kind = SegmentKind::eager_next; }));
  EXPECT_TRUE(ends([](Shape&) {}, 3)) << "a frame is missing";
  EXPECT_TRUE(ends([](Shape&) {}, 1)) << "a frame comes twice";
}

TEST(RunView, OtherSegmentsAndFramesBeginNone) {
  Shape shape;
  shape.kind = SegmentKind::padding;
  EXPECT_EQ(count_of(frames(shape, 3)), 1u);
  shape = {};
  shape.flags |= frame_flag::kAckNow;
  EXPECT_EQ(count_of(frames(shape, 3)), 1u);
  shape = {};
  shape.flags |= frame_flag::kOrdered;  // bulk is not
  EXPECT_EQ(count_of(frames(shape, 3)), 1u);
  shape = {};
  shape.kind = SegmentKind::eager_next;  // without kOrdered
  EXPECT_EQ(count_of(frames(shape, 3)), 1u);
}

}  // namespace
}  // namespace cluster::wire
