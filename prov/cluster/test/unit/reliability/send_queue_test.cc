// Which segments share a frame: small segments, the tail of a long payload and the head of the next, but
// never ordered
// segments with unordered ones.
#include "reliability/send_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/fake_environment.h"

namespace cluster::reliability {
namespace {

using carrier::PayloadMode;

struct SendQueueTest : testing::Test {
  SendQueueTest() : user(64 * 1024) {
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
    ASSERT_TRUE(queue.post(segment(kind, length, offset), {{&bytes, 1}, 0, length}, mode, token));
  }
  /// All of it as bulk, cut as the protocol cuts it.
  void add_bulk(std::size_t begin, std::size_t length) {
    for (std::size_t done = 0; done < length;) {
      const std::size_t space = queue.fragment_max(segment(wire::SegmentKind::bulk, 0));
      const std::size_t part = std::min(length - done, space);
      add(wire::SegmentKind::bulk, begin + done, part);
      done += part;
    }
  }
  Sequence nth(std::uint32_t frame) const { return first_sequence(handshake.session()) + frame; }
  const FrameBody& frame(std::uint32_t number) { return *window.at(nth(number)).body; }
  /// The segments of a frame as they would arrive, checked against what they were made of.
  std::vector<std::size_t> contents(std::uint32_t number) {
    FrameBody& body = *window.at(nth(number)).body;
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
  test::FakeLog log;
  Handshake handshake{[] {
    wire::Opening opening;
    opening.session = 1;
    opening.frame_max = 1472;
    opening.window = 64;
    return opening;
  }()};
  multipath::PathManager paths{{}, link::Path{}, 64, log};
  FrameSize frame_size{handshake, paths, log};
  FlowStatus status;
  BodyPool bodies{1472};
  SendQueue queue{handshake, frame_size, paths, bodies, status};
  SendWindow& window = queue.window();
  const std::size_t capacity = frame_size.segment_capacity();
};

TEST_F(SendQueueTest, FullFramesReferToUserMemory) {
  const std::size_t space = queue.fragment_max(segment(wire::SegmentKind::bulk, 0));
  add(wire::SegmentKind::bulk, 0, space, PayloadMode::reference, 9);
  ASSERT_EQ(window.queued(), 1u);
  EXPECT_EQ(frame(0).size(), capacity);
  ASSERT_EQ(frame(0).payload_pieces, 1u);
  EXPECT_EQ(frame(0).payload[0].data(), user.data());
  EXPECT_EQ(frame(0).tokens, std::vector<carrier::Token>{9});
}

TEST_F(SendQueueTest, TheTailOfOneAndTheHeadOfTheNextFillAFrame) {
  add_bulk(0, 16'000);
  add_bulk(20000, 16'000);
  add_bulk(40000, 16'000);
  queue.close_open_frame();
  std::size_t payload = 0;
  const std::size_t frames = window.queued();
  for (std::uint32_t s = 0; s < frames; ++s) {
    if (s + 1 < frames) {
      EXPECT_EQ(frame(s).size(), capacity) << "frame " << s;
    }
    for (const std::size_t length : contents(s)) payload += length;
  }
  EXPECT_EQ(payload, 3u * 16'000);
}

TEST_F(SendQueueTest, ASharedFrameHasTheTokensOfAllItsSegments) {
  add(wire::SegmentKind::bulk, 0, 500, PayloadMode::reference, 4);
  EXPECT_TRUE(queue.has_open_frame()) << "a part of a frame waits for more";
  const std::size_t space = queue.fragment_max(segment(wire::SegmentKind::bulk, 0));
  add(wire::SegmentKind::bulk, 1000, space, PayloadMode::reference, 5);
  EXPECT_FALSE(queue.has_open_frame());
  ASSERT_EQ(window.queued(), 1u);
  EXPECT_EQ(frame(0).tokens, (std::vector<carrier::Token>{4, 5}));
  EXPECT_EQ(contents(0), (std::vector<std::size_t>{500, space}));
}

TEST_F(SendQueueTest, AlmostNoSpaceIsNotWorthASegment) {
  const wire::Segment bulk = segment(wire::SegmentKind::bulk, 0);
  const std::size_t whole = queue.fragment_max(bulk);
  add(wire::SegmentKind::bulk, 0, whole - 300);
  ASSERT_TRUE(queue.has_open_frame());
  add(wire::SegmentKind::bulk, 2000, 300 - 2 * wire::encoded_size(bulk) - 20);  // 20 + a header are left
  ASSERT_TRUE(queue.has_open_frame());
  EXPECT_EQ(queue.fragment_max(bulk), whole);
}

TEST_F(SendQueueTest, OrderedAndUnorderedSegmentsNeverShare) {
  add(wire::SegmentKind::bulk, 0, 500);
  EXPECT_EQ(queue.fragment_max(segment(wire::SegmentKind::write_next, 0)),
            capacity - wire::encoded_size(segment(wire::SegmentKind::write_next, 0)));
  add(wire::SegmentKind::write_next, 0, 100, PayloadMode::copy);
  queue.close_open_frame();
  ASSERT_EQ(window.queued(), 2u);
  EXPECT_FALSE(frame(0).ordered);
  EXPECT_TRUE(frame(1).ordered);
}

/// While a frame is in flight, messages wait for each other.
struct GatheringTest : SendQueueTest {
  GatheringTest() {
    add(wire::SegmentKind::eager, 0, 8, PayloadMode::copy);
    EXPECT_FALSE(queue.may_coalesce()) << "nothing is in flight";
    queue.close_open_frame();
    window.on_sent(nth(0), TransmissionNumber{1}, Time{});
  }
  /// Adds messages of `length` bytes until no more should wait. Returns how many.
  int until_enough(std::size_t length) {
    int added = 0;
    do {
      add(wire::SegmentKind::eager, 0, length, PayloadMode::copy);
      ++added;
    } while (queue.may_coalesce());
    return added;
  }
};

TEST_F(GatheringTest, FullFramesWaitUntilTheyAreAGoodBurst) {
  const int added = until_enough(1000);
  EXPECT_EQ(added, 17) << "each closes the frame before it";
  EXPECT_EQ(window.queued(), 16u);
}

TEST_F(GatheringTest, SmallMessagesWaitUntilTheirFrameIsFull) {
  const auto space =
      static_cast<int>(capacity / (8 + wire::encoded_size(segment(wire::SegmentKind::eager, 8))));
  EXPECT_GE(space, 48);
  EXPECT_EQ(until_enough(8), space);
  EXPECT_EQ(window.queued(), 0u) << "they fit into one frame";
}

TEST_F(GatheringTest, ManyMessagesLeaveInAFewFullFrames) {
  EXPECT_GE(until_enough(64), 48);
  EXPECT_LE(window.queued(), 4u);
  queue.close_open_frame();
  while (window.queued() != 0) window.on_sent(window.next(), TransmissionNumber{2}, Time{});
  EXPECT_GE(until_enough(64), 48) << "what has left does not count";
}

TEST_F(GatheringTest, NothingWaitsBehindALostFrame) {
  window.mark_lost(nth(0));
  add(wire::SegmentKind::eager, 0, 8, PayloadMode::copy);
  EXPECT_FALSE(queue.may_coalesce());
}

}  // namespace
}  // namespace cluster::reliability
