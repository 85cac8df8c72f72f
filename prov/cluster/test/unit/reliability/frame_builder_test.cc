// What shares a frame: small segments, the tail of a long payload and the head of the next, but never ordered
// segments with unordered ones.
#include "reliability/frame_builder.h"

#include <gtest/gtest.h>

#include <vector>

namespace cluster::reliability {
namespace {

constexpr std::size_t kCapacity = 1400;
using carrier::PayloadMode;

struct FrameBuilderTest : testing::Test {
  FrameBuilderTest() : user(64 * 1024) {
    for (std::size_t i = 0; i < user.size(); ++i) user[i] = static_cast<std::byte>(i * 7 + i / 256);
  }

  static wire::Segment segment(wire::SegmentKind kind, std::size_t length, std::uint64_t offset = 0) {
    wire::Segment made;
    made.kind = kind;
    made.length = static_cast<std::uint32_t>(length);
    made.offset = offset;
    return made;
  }
  void add(wire::SegmentKind kind, std::size_t offset, std::size_t length,
           PayloadMode mode = PayloadMode::reference, carrier::Token token = 0) {
    const ConstBytes bytes(user.data() + offset, length);
    builder.add(segment(kind, length, offset), {{&bytes, 1}, 0, length}, mode, token, kCapacity);
  }
  /// All of it as bulk, cut as the protocol cuts it.
  void add_bulk(std::size_t begin, std::size_t length) {
    for (std::size_t done = 0; done < length;) {
      const std::size_t space = builder.payload_space(segment(wire::SegmentKind::bulk, 0), kCapacity);
      const std::size_t part = std::min(length - done, space);
      add(wire::SegmentKind::bulk, begin + done, part);
      done += part;
    }
  }
  const FrameBody& frame(std::uint32_t s) { return *window.at({s}).body; }
  /// The segments of a frame as they would arrive, checked against what they were made of.
  std::vector<std::size_t> contents(std::uint32_t s) {
    FrameBody& body = *window.at({s}).body;
    std::vector<std::byte> bytes(body.segments(), body.segments() + body.filled);
    for (std::size_t i = 0; i < body.payload_pieces; ++i) {
      bytes.insert(bytes.end(), body.payload[i].begin(), body.payload[i].end());
    }
    std::vector<std::size_t> lengths;
    for (ConstBytes left = bytes; !left.empty();) {
      wire::Segment read;
      const std::size_t header = wire::decode(left, read);
      EXPECT_NE(header, 0u);
      const ConstBytes payload = left.subspan(header, read.length);
      EXPECT_TRUE(std::equal(payload.begin(), payload.end(), user.begin() + static_cast<long>(read.offset)));
      lengths.push_back(read.length);
      left = left.subspan(header + read.length);
    }
    return lengths;
  }

  std::vector<std::byte> user;
  BodyPool bodies{1500};
  SendWindow window{64};
  FrameBuilder builder{bodies, window};
};

TEST_F(FrameBuilderTest, FullFramesReferToUserMemory) {
  const std::size_t space = builder.payload_space(segment(wire::SegmentKind::bulk, 0), kCapacity);
  add(wire::SegmentKind::bulk, 0, space, PayloadMode::reference, 9);
  ASSERT_EQ(window.queued(), 1u);
  EXPECT_EQ(frame(0).size(), kCapacity);
  ASSERT_EQ(frame(0).payload_pieces, 1u);
  EXPECT_EQ(frame(0).payload[0].data(), user.data());
  EXPECT_EQ(frame(0).tokens, std::vector<carrier::Token>{9});
}

TEST_F(FrameBuilderTest, TheTailOfOneAndTheHeadOfTheNextFillAFrame) {
  add_bulk(0, 16 * 1024);
  add_bulk(20000, 16 * 1024);
  add_bulk(40000, 16 * 1024);
  builder.close();
  std::size_t payload = 0;
  for (std::uint32_t s = 0; s < window.end().value; ++s) {
    if (s + 1 < window.end().value) {
      EXPECT_EQ(frame(s).size(), kCapacity) << "frame " << s;
    }
    for (const std::size_t length : contents(s)) payload += length;
  }
  EXPECT_EQ(payload, 3u * 16 * 1024);
}

TEST_F(FrameBuilderTest, ASharedFrameHasTheTokensOfAllItsSegments) {
  add(wire::SegmentKind::bulk, 0, 500, PayloadMode::reference, 4);
  EXPECT_TRUE(builder.open()) << "a part of a frame waits for more";
  const std::size_t space = builder.payload_space(segment(wire::SegmentKind::bulk, 0), kCapacity);
  add(wire::SegmentKind::bulk, 1000, space, PayloadMode::reference, 5);
  EXPECT_FALSE(builder.open());
  ASSERT_EQ(window.queued(), 1u);
  EXPECT_EQ(frame(0).tokens, (std::vector<carrier::Token>{4, 5}));
  EXPECT_EQ(contents(0), (std::vector<std::size_t>{500, space}));
}

TEST_F(FrameBuilderTest, AlmostNoSpaceIsNotWorthASegment) {
  const wire::Segment bulk = segment(wire::SegmentKind::bulk, 0);
  const std::size_t whole = builder.payload_space(bulk, kCapacity);
  add(wire::SegmentKind::bulk, 0, whole - 300);
  ASSERT_TRUE(builder.open());
  add(wire::SegmentKind::bulk, 2000, 300 - 2 * wire::encoded_size(bulk) - 20);  // 20 + a header are left
  ASSERT_TRUE(builder.open());
  EXPECT_EQ(builder.payload_space(bulk, kCapacity), whole);
}

TEST_F(FrameBuilderTest, OrderedAndUnorderedSegmentsNeverShare) {
  add(wire::SegmentKind::bulk, 0, 500);
  EXPECT_EQ(builder.payload_space(segment(wire::SegmentKind::write_next, 0), kCapacity),
            kCapacity - wire::encoded_size(segment(wire::SegmentKind::write_next, 0)));
  add(wire::SegmentKind::write_next, 0, 100, PayloadMode::copy);
  builder.close();
  ASSERT_EQ(window.queued(), 2u);
  EXPECT_FALSE(frame(0).ordered);
  EXPECT_TRUE(frame(1).ordered);
}

}  // namespace
}  // namespace cluster::reliability
