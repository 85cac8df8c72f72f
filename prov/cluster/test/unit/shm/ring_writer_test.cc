#include "shm/ring_writer.h"

#include <gtest/gtest.h>

#include <array>

#include "base/ring_queue.h"
#include "shm/ring_reader.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

class RingWriterTest : public ::testing::Test {
 protected:
  bool post(std::uint64_t number, std::size_t size) {
    const Message message(number, size);
    return writer.post(message.segment, message.gather());
  }
  ::testing::AssertionResult take(std::uint64_t number, std::size_t size) {
    wire::Segment segment;
    ConstBytes payload;
    if (!reader.peek(segment, payload))
      return ::testing::AssertionFailure() << "nothing there for " << number;
    if (!Message(number, size).equals(segment, payload))
      return ::testing::AssertionFailure() << "not " << number;
    reader.pop();
    return ::testing::AssertionSuccess();
  }
  bool empty() {
    wire::Segment segment;
    ConstBytes payload;
    return !reader.peek(segment, payload);
  }

  RingMemory memory;
  RingWriter writer{memory.bytes(), memory.geometry};
  RingReader reader{memory.bytes(), memory.geometry};
};

TEST_F(RingWriterTest, SmallPayloadTravelsInTheSlotAndTouchesNothingElse) {
  ASSERT_TRUE(post(7, 32));  // 16 bytes of header and 32 of payload: exactly what fits
  EXPECT_EQ(memory.slot(0).offset, Slot::kInline);
  EXPECT_EQ(memory.slot(0).sequence, kFirstNumber + 1);
  EXPECT_EQ(memory.slot(1).sequence, 0u);
  const Bytes arena = memory.bytes().subspan(memory.geometry.arena_begin());
  for (const std::byte byte : arena) ASSERT_EQ(byte, std::byte{0});
  EXPECT_TRUE(take(7, 32));
}

TEST_F(RingWriterTest, OneByteMoreGoesToTheArenaAtALine) {
  ASSERT_TRUE(post(1, 33));
  ASSERT_TRUE(post(2, 33));
  EXPECT_EQ(memory.slot(0).offset, 0u);
  EXPECT_EQ(memory.slot(1).offset, 64u);
  EXPECT_TRUE(take(1, 33));
  EXPECT_TRUE(take(2, 33));
}

TEST_F(RingWriterTest, EmptyPayloadAndLongestHeaderFit) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::announce;
  segment.flags = wire::segment_flag::kTagged | wire::segment_flag::kData;
  segment.id = 1;
  segment.total = 2;
  segment.tag = 3;
  segment.data = 4;
  ASSERT_TRUE(writer.post(segment, Gather{}));
  wire::Segment seen;
  ConstBytes payload;
  ASSERT_TRUE(reader.peek(seen, payload));
  EXPECT_EQ(seen.kind, segment.kind);
  EXPECT_EQ(seen.id, 1u);
  EXPECT_EQ(seen.total, 2u);
  EXPECT_EQ(seen.tag, 3u);
  EXPECT_EQ(seen.data, 4u);
  EXPECT_TRUE(payload.empty());
}

TEST_F(RingWriterTest, GathersScatteredPayloadIntoSlotAndArena) {
  for (const std::size_t size : {20u, 5000u}) {
    Message message(9, size);
    const ConstBytes all = message.bytes;
    const std::array<ConstBytes, 3> slices{all.subspan(0, 3), all.subspan(3, 10), all.subspan(13)};
    ASSERT_TRUE(writer.post(message.segment, Gather{slices, 0, size}));
    EXPECT_TRUE(take(9, size));
  }
}

TEST_F(RingWriterTest, EverySlotIsUsedAndNotOneMore) {
  const std::uint32_t slots = memory.geometry.slots;
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(post(i, 8)) << i;
  EXPECT_FALSE(post(slots, 8));
  EXPECT_FALSE(writer.drained());
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(take(i, 8)) << i;
  EXPECT_TRUE(empty());
  EXPECT_TRUE(writer.drained());
  EXPECT_TRUE(post(slots, 8));
}

TEST_F(RingWriterTest, ARefusedPostLeavesNoTrace) {
  const std::uint32_t slots = memory.geometry.slots;
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(post(i, 8));
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(post(999, 4000));
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(take(i, 8));
  EXPECT_TRUE(empty());
}

TEST_F(RingWriterTest, TheArenaFillsToTheLastByteAndNotFurther) {
  const std::size_t most = writer.payload_max();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(post(i, most)) << i;
  EXPECT_FALSE(post(8, 33)) << "the arena is full";
  ASSERT_TRUE(post(8, 32)) << "but a slot is free for what needs no arena";
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(take(i, most)) << i;
  EXPECT_TRUE(take(8, 32));
  EXPECT_TRUE(empty());
}

TEST_F(RingWriterTest, ABlockThatWouldCrossTheEndBeginsAtTheStart) {
  const std::size_t most = writer.payload_max();
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(post(i, most));
    ASSERT_TRUE(take(i, most));
  }
  ASSERT_TRUE(empty());
  ASSERT_TRUE(post(7, 64));
  ASSERT_TRUE(take(7, 64));
  ASSERT_TRUE(empty());
  ASSERT_TRUE(post(8, most)) << "needs the skipped end and the start";
  EXPECT_EQ(memory.slot(8).offset, 0u);
  EXPECT_TRUE(take(8, most));
  EXPECT_TRUE(empty());
  EXPECT_TRUE(writer.drained());
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(post(i, most)) << "the skipped bytes came back with the block " << i;
    ASSERT_TRUE(take(i, most));
    ASSERT_TRUE(empty());
  }
}

TEST_F(RingWriterTest, ABlockThatEndsExactlyAtTheEndStaysThere) {
  const std::size_t most = writer.payload_max();
  for (int lap = 0; lap < 3; ++lap) {
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(post(i, most));
      EXPECT_EQ(memory.slot(static_cast<std::uint32_t>(lap * 8 + i)).offset, most * i);
      ASSERT_TRUE(take(i, most));
      ASSERT_TRUE(empty());
    }
  }
}

// The sender learns of free space only through the head, which the reader writes lazily. Whatever the two do,
// a refused sender must get space after the reader has taken what there was and looked once more.
TEST_F(RingWriterTest, NeverStarvesHoweverFullAndHoweverTheSizesFall) {
  std::uint64_t state = 1;
  const auto random = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 33);
  };
  const std::uint32_t sizes[] = {0, 8, 32, 33, 64, 1000, 4096, 8000, 8192};
  RingQueue<std::pair<std::uint64_t, std::size_t>> in_flight;
  std::uint64_t number = 0;
  for (int round = 0; round < 4'000; ++round) {
    for (std::uint32_t burst = random() % 100; burst > 0; --burst) {
      const std::size_t size = sizes[random() % std::size(sizes)];
      if (!post(number, size)) {
        ASSERT_FALSE(in_flight.empty()) << "refused though the reader has taken everything and looked";
        break;
      }
      in_flight.push_back({number++, size});
    }
    for (std::uint32_t burst = random() % 100; burst > 0 && !in_flight.empty(); --burst) {
      ASSERT_TRUE(take(in_flight.front().first, in_flight.front().second));
      in_flight.pop_front();
    }
    if (in_flight.empty()) {
      ASSERT_TRUE(empty());
      ASSERT_TRUE(writer.drained());
    }
  }
  EXPECT_GT(number, 20'000u);
}

TEST_F(RingWriterTest, NumbersAndPlacesWrapAround) {
  const std::size_t most = writer.payload_max();
  const std::size_t needed = Geometry::kArenaMax / most;
  ASSERT_LT(kFirstNumber + static_cast<std::uint32_t>(2 * needed), kFirstNumber) << "the test must pass 2^32";
  for (std::size_t i = 0; i < 2 * needed; ++i) {
    ASSERT_TRUE(post(i, i % 2 == 0 ? most : 8)) << i;
    ASSERT_TRUE(take(i, i % 2 == 0 ? most : 8)) << i;
    if (i % 5 == 0) {
      ASSERT_TRUE(empty());
    }
  }
}

TEST_F(RingWriterTest, AStallIsReportedOnceAndTheNextOneAgain) {
  EXPECT_FALSE(writer.newly_stalled());
  EXPECT_FALSE(writer.newly_stalled()) << "nothing waits";
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_TRUE(post(number, 8));
    if (number > 1) {
      EXPECT_FALSE(writer.newly_stalled()) << "the reader has taken the one before";
    }
    EXPECT_TRUE(writer.newly_stalled());
    EXPECT_FALSE(writer.newly_stalled());
    ASSERT_TRUE(take(number, 8));
    ASSERT_TRUE(empty());
  }
}

TEST_F(RingWriterTest, ANonsenseHeadIsRefused) {
  const std::uint32_t slots = memory.geometry.slots;
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(post(i, 8));
  memory.control().head = kFirstNumber + slots + 1;  // more than was ever written
  EXPECT_FALSE(post(slots, 8));
  EXPECT_TRUE(writer.broken());
  memory.control().head = kFirstNumber + slots;
  EXPECT_FALSE(post(slots, 8)) << "no second chance";
  EXPECT_FALSE(writer.drained() && !writer.broken());
}

TEST_F(RingWriterTest, AHeadThatGoesBackIsRefused) {
  const std::uint32_t slots = memory.geometry.slots;
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(post(i, 8));
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(take(i, 8));
  ASSERT_TRUE(empty());
  for (std::uint32_t i = 0; i < slots; ++i) ASSERT_TRUE(post(i, 8));
  memory.control().head = kFirstNumber + slots - 1;
  EXPECT_FALSE(post(0, 8));
  EXPECT_TRUE(writer.broken());
}

}  // namespace
}  // namespace cluster::shm
