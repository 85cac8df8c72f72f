// Taking segments back out of a ring: what the writer may do while the reader takes none, and that each side
// yields to the other.
#include <gtest/gtest.h>

#include "shm/ring_reader.h"
#include "shm/ring_writer.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

class RingRecallTest : public testing::Test {
 protected:
  RingMemory memory;
  RingWriter writer{memory.bytes(), memory.geometry};
  RingReader reader{memory.bytes(), memory.geometry};

  void post(std::uint64_t number, std::size_t size) {
    const Message message(number, size);
    ASSERT_TRUE(writer.post(message.segment, message.gather()));
  }
  /// Takes one segment, in a batch of its own.
  wire::Segment take(bool refuse = false) {
    EXPECT_TRUE(reader.begin_batch());
    wire::Segment segment;
    ConstBytes payload;
    EXPECT_TRUE(reader.peek(segment, payload));
    if (refuse) reader.refuse();
    reader.pop();
    reader.end_batch();
    return segment;
  }
  void expect_payload(std::uint32_t number, std::uint64_t message, std::size_t size) {
    const Message wanted(message, size);
    const ConstBytes payload = writer.payload(number);
    ASSERT_EQ(payload.size(), size);
    EXPECT_EQ(std::memcmp(payload.data(), wanted.bytes.data(), size), 0);
  }
};

TEST_F(RingRecallTest, HoldingShowsExactlyWhatWasTaken) {
  for (std::uint64_t i = 0; i < 5; ++i) post(i, 8);
  take();
  take();
  EXPECT_EQ(writer.taken(), kFirstNumber) << "the head is published now and then";
  ASSERT_TRUE(writer.hold());
  EXPECT_EQ(writer.taken(), kFirstNumber + 2);
  writer.resume();
  EXPECT_EQ(writer.taken(), kFirstNumber + 2) << "though the head still lags";
  EXPECT_EQ(take().tag, 2u);
  take();
  take();
  ASSERT_TRUE(reader.found_empty());
  EXPECT_EQ(writer.taken(), kFirstNumber + 5);
  EXPECT_FALSE(writer.broken());
}

TEST_F(RingRecallTest, WhatIsTakenBackHasNoEffectAndTheRestArrives) {
  const std::size_t sizes[] = {8, 3000, 0, 40, 700};
  for (std::uint64_t i = 0; i < 5; ++i) post(i, sizes[i]);
  take();
  ASSERT_TRUE(writer.hold());
  for (const std::uint32_t i : {1u, 3u}) {
    expect_payload(kFirstNumber + i, i, sizes[i]);
    writer.withdraw(kFirstNumber + i);
  }
  writer.resume();
  for (std::uint64_t i = 1; i < 5; ++i) {
    const wire::Segment segment = take();
    EXPECT_EQ(segment.kind, i % 2 == 1 ? wire::SegmentKind::padding : wire::SegmentKind::eager);
    EXPECT_EQ(segment.length, sizes[i]);
    if (i % 2 == 0) {
      EXPECT_EQ(segment.tag, i);
    }
  }
  EXPECT_TRUE(reader.found_empty());
  EXPECT_TRUE(writer.drained());
}

/// Taken-back segments give back their bytes of the arena: the ring goes round many times.
TEST_F(RingRecallTest, TheArenaIsGivenBack) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    post(i, 1000 + i);
    ASSERT_TRUE(writer.hold());
    if (i % 3 != 0) writer.withdraw(writer.next() - 1);
    writer.resume();
    EXPECT_EQ(take().kind, i % 3 != 0 ? wire::SegmentKind::padding : wire::SegmentKind::eager);
    ASSERT_TRUE(reader.found_empty());
  }
}

TEST_F(RingRecallTest, TheWriterGivesWayToAReaderThatTakes) {
  post(1, 8);
  ASSERT_TRUE(reader.begin_batch());
  EXPECT_FALSE(writer.hold());
  writer.resume();
  reader.end_batch();
  EXPECT_TRUE(writer.hold());
  writer.resume();
}

TEST_F(RingRecallTest, TheReaderGivesWayToAWriterThatTakesBack) {
  post(1, 8);
  ASSERT_TRUE(writer.hold());
  EXPECT_FALSE(reader.begin_batch());
  EXPECT_FALSE(reader.begin_batch());
  writer.resume();
  EXPECT_EQ(take().tag, 1u);
}

TEST_F(RingRecallTest, AWriterThatDiesMeanwhileHoldsNothing) {
  post(1, 8);
  ASSERT_TRUE(writer.hold());
  ASSERT_FALSE(reader.begin_batch());
  reader.ignore_writer();
  EXPECT_EQ(take().tag, 1u);
}

/// Sides that do not share fences find each other as well.
TEST_F(RingRecallTest, AWriterWithoutFencesIsHeard) {
  std::atomic_ref(memory.control().held).store(0);
  post(1, 8);
  EXPECT_EQ(take().tag, 1u);
  std::atomic_ref(memory.control().held).store(1);
  EXPECT_FALSE(reader.begin_batch());
}

TEST_F(RingRecallTest, ARefusalIsSeenAndOnlyOfItsSegment) {
  for (std::uint64_t i = 0; i < 3; ++i) post(i, 8);
  take();
  take(true);
  take();
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(writer.take_refusal(kFirstNumber + i), i == 1);
  EXPECT_FALSE(writer.take_refusal(kFirstNumber + 1 + kSmall.slots)) << "one lap later";
  EXPECT_FALSE(writer.take_refusal(kFirstNumber + 1)) << "or when the number comes again";
}

/// Fresh memory says nothing of any number, that before the wrap included.
TEST_F(RingRecallTest, NothingIsRefusedByItself) {
  for (std::uint32_t i = 0; i < 2 * Geometry::kSlotsMax + 2; ++i) {
    post(i, 0);
    take();
    EXPECT_FALSE(writer.take_refusal(kFirstNumber + i)) << i;
    ASSERT_TRUE(reader.found_empty());
  }
}

TEST_F(RingRecallTest, AReaderThatOverwritesASlotDoesNotMislead) {
  post(1, 8);
  post(2, 3000);
  ASSERT_TRUE(writer.hold());
  memory.slot((writer.next() - 2) & (kSmall.slots - 1)).length = 41;
  EXPECT_TRUE(writer.payload(writer.next() - 2).empty());
  Slot& long_one = memory.slot((writer.next() - 1) & (kSmall.slots - 1));
  long_one.offset = kSmall.arena_bytes - 64;
  EXPECT_TRUE(writer.payload(writer.next() - 1).empty());
  long_one.offset = 0xfffffff0;
  EXPECT_TRUE(writer.payload(writer.next() - 1).empty());
  writer.resume();
}

TEST_F(RingRecallTest, AnImpossiblePositionBreaksTheRing) {
  post(1, 8);
  std::atomic_ref(memory.control().next).store(kFirstNumber + 2);
  EXPECT_FALSE(writer.hold());
  EXPECT_TRUE(writer.broken());
}

}  // namespace
}  // namespace cluster::shm
