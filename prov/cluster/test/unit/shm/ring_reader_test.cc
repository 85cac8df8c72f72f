#include "shm/ring_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>

#include "shm/ring_writer.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

class RingReaderTest : public ::testing::Test {
 protected:
  void post(std::uint64_t number, std::size_t size) {
    const Message message(number, size);
    ASSERT_TRUE(writer.post(message.segment, message.gather()));
  }
  bool peek() { return reader.peek(segment, payload); }
  std::uint32_t head() { return memory.control().head - kFirstNumber; }  ///< segments given back

  RingMemory memory;
  RingWriter writer{memory.bytes(), memory.geometry};
  RingReader reader{memory.bytes(), memory.geometry};
  wire::Segment segment;
  ConstBytes payload;
};

TEST_F(RingReaderTest, ShowsTheSameUntilItIsTaken) {
  EXPECT_FALSE(peek());
  post(1, 100);
  post(2, 8);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peek());
    EXPECT_TRUE(Message(1, 100).equals(segment, payload));
  }
  reader.pop();
  ASSERT_TRUE(peek());
  EXPECT_TRUE(Message(2, 8).equals(segment, payload));
  reader.pop();
  EXPECT_FALSE(peek());
  EXPECT_FALSE(reader.broken());
}

TEST_F(RingReaderTest, ShowsShortMessagesInTheirSlotsAndInTheArena) {
  ShortMessage message;
  EXPECT_FALSE(reader.has_segment());
  EXPECT_TRUE(reader.found_empty());
  const Message sent(7, 32);
  ASSERT_TRUE(writer.post_short({.length = 32, .tagged = true, .tag = 7}, sent.bytes.data()));
  post(8, 8);
  post(9, 33);
  const Message long_one(10, 4096);
  ASSERT_TRUE(writer.post_short({.length = 4096, .tagged = true, .tag = 10}, long_one.bytes.data()));
  post(11, 200);
  EXPECT_FALSE(reader.found_empty());
  for (const std::uint64_t number : {7u, 8u, 9u, 10u}) {
    ASSERT_TRUE(reader.peek_short(message)) << "by either way of writing";
    const Message expected(number, message.header.length);
    EXPECT_TRUE(expected.equals(expected.segment, {message.payload, message.header.length}));
    EXPECT_EQ(message.header.tag, number);
    reader.pop();
  }
  EXPECT_TRUE(reader.peek_short(message)) << "and may be left to the other";
  ASSERT_TRUE(peek());
  EXPECT_TRUE(Message(11, 200).equals(segment, payload));
  reader.pop();
  EXPECT_TRUE(reader.found_empty());
  EXPECT_EQ(head(), 5u);
}

TEST_F(RingReaderTest, ShowsWritesWhicheverWayTheyWereWritten) {
  for (const std::uint32_t length : {0u, 8u, 13u, 4096u}) {
    const Message sent(1, length);
    const wire::WriteHeader header{
        .length = length, .id = 2, .address = 3, .key = 4, .unanswered = length != 13};
    ASSERT_TRUE(writer.post_write(header, sent.gather()));
    ASSERT_TRUE(peek());
    EXPECT_EQ(segment.kind, wire::SegmentKind::write);
    EXPECT_EQ(segment.unanswered(), header.unanswered);
    EXPECT_EQ(segment.length, length);
    EXPECT_EQ(segment.total, length);
    EXPECT_EQ(segment.id, 2u);
    EXPECT_EQ(segment.offset, 3u);
    EXPECT_EQ(segment.key, 4u);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), sent.bytes.begin(), sent.bytes.end()));
    reader.pop();
  }
  const Message sent(1, 8);
  std::uint32_t posted = 0;
  while (writer.post_write({.length = 8}, sent.gather())) ++posted;
  EXPECT_EQ(posted + 4, memory.geometry.slots)
      << "a full ring takes none, and four slots are not given back yet";
}

TEST_F(RingReaderTest, GivesTheArenaBackWhicheverWayItWasRead) {
  const std::uint32_t length = static_cast<std::uint32_t>(writer.payload_max());
  const Message sent(1, length);
  for (std::uint32_t i = 0; i < 8 * memory.geometry.arena_bytes / length; ++i) {
    ASSERT_TRUE(writer.post_short({.length = length, .tagged = true, .tag = 1}, sent.bytes.data())) << i;
    ShortMessage message;
    ASSERT_TRUE(reader.peek_short(message));
    EXPECT_TRUE(sent.equals(sent.segment, {message.payload, length}));
    if (i % 3 == 0) {
      ASSERT_TRUE(peek());
    }
    reader.pop();
  }
  EXPECT_FALSE(reader.broken());
}

TEST_F(RingReaderTest, WhatIsShownStaysWhereItIs) {
  ShortMessage message;
  post(1, 8);
  ASSERT_TRUE(peek());
  EXPECT_FALSE(reader.peek_short(message)) << "peek() has shown it";
  reader.pop();
  post(2, 8);
  EXPECT_TRUE(reader.peek_short(message));
}

TEST_F(RingReaderTest, ShortMessagesThatContradictThemselvesAreLeftToTheGate) {
  const std::function<void(Slot&)> corruptions[] = {
      [](Slot& slot) { slot.length = 9; },
      [](Slot& slot) { slot.header_size = 8; },
      [](Slot& slot) { slot.header_size = 24; },
      [](Slot& slot) { slot.offset = 1; },
      [](Slot& slot) { slot.offset = Slot::kInline - 63; },
      [](Slot& slot) { slot.inline_bytes[4] = std::byte{200}; },
      [](Slot& slot) {
        slot.length = 200;
        slot.inline_bytes[4] = std::byte{200};
      },
  };
  for (const auto& corrupt : corruptions) {
    RingMemory bad;
    RingWriter into(bad.bytes(), bad.geometry);
    RingReader from(bad.bytes(), bad.geometry);
    const Message sent(1, 8);
    ASSERT_TRUE(into.post(sent.segment, sent.gather()));
    corrupt(bad.slot(kFirstNumber & (bad.geometry.slots - 1)));
    ShortMessage message;
    EXPECT_FALSE(from.peek_short(message));
  }
}

TEST_F(RingReaderTest, PublishesAfterAQuarterOfTheSlots) {
  const std::uint32_t quarter = memory.geometry.slots / 4;
  for (std::uint32_t i = 0; i < quarter + 1; ++i) post(i, 8);
  for (std::uint32_t i = 0; i < quarter - 1; ++i) {
    ASSERT_TRUE(peek());
    reader.pop();
  }
  EXPECT_EQ(head(), 0u) << "lazy: the writer's line is left alone";
  ASSERT_TRUE(peek());
  reader.pop();
  EXPECT_EQ(head(), quarter);
}

TEST_F(RingReaderTest, PublishesAfterAQuarterOfTheArena) {
  for (int i = 0; i < 5; ++i) post(i, memory.geometry.arena_bytes / 8);
  ASSERT_TRUE(peek());
  reader.pop();
  EXPECT_EQ(head(), 0u);
  ASSERT_TRUE(peek());
  reader.pop();
  EXPECT_EQ(head(), 2u);
}

TEST_F(RingReaderTest, SkippedBytesCountAsTaken) {
  const std::uint32_t eighth = memory.geometry.arena_bytes / 8;
  for (int i = 0; i < 6; ++i) {
    post(i, eighth);
    ASSERT_TRUE(peek());
    reader.pop();
    ASSERT_FALSE(peek());
  }
  post(6, eighth);
  post(7, 64);
  post(8, eighth);  // skips nearly an eighth
  post(9, 8);
  ASSERT_TRUE(peek());
  reader.pop();
  ASSERT_TRUE(peek());
  reader.pop();
  EXPECT_EQ(head(), 6u);
  ASSERT_TRUE(peek());
  EXPECT_EQ(payload.data(), memory.bytes().data() + memory.geometry.arena_begin());
  reader.pop();
  EXPECT_EQ(head(), 9u);
}

TEST_F(RingReaderTest, PublishesWhenThereIsNothingToLookAt) {
  post(1, 8);
  ASSERT_TRUE(peek());
  reader.pop();
  EXPECT_EQ(head(), 0u);
  EXPECT_FALSE(peek());
  EXPECT_EQ(head(), 1u);
}

TEST_F(RingReaderTest, PublishesWhenItIsAskedAgainForWhatIsNotTaken) {
  post(1, 8);
  post(2, 8);
  ASSERT_TRUE(peek());
  reader.pop();
  ASSERT_TRUE(peek());
  EXPECT_EQ(head(), 0u);
  ASSERT_TRUE(peek());
  EXPECT_EQ(head(), 1u);
}

TEST_F(RingReaderTest, TheHeaderShownIsOutOfTheWritersReach) {
  post(1, 8);
  ASSERT_TRUE(peek());
  std::memset(memory.slot(0).inline_bytes, 0xff, Slot::kInlineBytes);
  EXPECT_TRUE(Message(1, 8).equals(segment, payload));
}

struct Scribble {
  const char* name;
  std::function<void(RingMemory&)> scribble;
};

void PrintTo(const Scribble& scribble, std::ostream* out) { *out << scribble.name; }

class RingReaderRefuses : public ::testing::TestWithParam<Scribble> {};

TEST_P(RingReaderRefuses, WithoutCrashing) {
  RingMemory memory;
  RingWriter writer(memory.bytes(), memory.geometry);
  RingReader reader(memory.bytes(), memory.geometry);
  const Message message(1, 100);
  ASSERT_TRUE(writer.post(message.segment, message.gather()));
  GetParam().scribble(memory);
  wire::Segment segment;
  ConstBytes payload;
  EXPECT_FALSE(reader.peek(segment, payload));
  EXPECT_TRUE(reader.broken());
  EXPECT_FALSE(reader.peek(segment, payload)) << "and stays broken";
}

INSTANTIATE_TEST_SUITE_P(
    Scribbles, RingReaderRefuses,
    ::testing::Values(
        Scribble{"SequenceAhead", [](RingMemory& memory) { memory.slot(0).sequence = kFirstNumber + 2; }},
        Scribble{"SequenceWild", [](RingMemory& memory) { memory.slot(0).sequence = 0xdeadbeef; }},
        Scribble{"NoHeader", [](RingMemory& memory) { memory.slot(0).header_size = 0; }},
        Scribble{"HeaderShort", [](RingMemory& memory) { memory.slot(0).header_size = 15; }},
        Scribble{"HeaderLong", [](RingMemory& memory) { memory.slot(0).header_size = 17; }},
        Scribble{"HeaderBeyondSlot", [](RingMemory& memory) { memory.slot(0).header_size = 49; }},
        Scribble{"HeaderHuge", [](RingMemory& memory) { memory.slot(0).header_size = 255; }},
        Scribble{"KindUnknown", [](RingMemory& memory) { memory.slot(0).inline_bytes[0] = std::byte{99}; }},
        Scribble{"LengthsDiffer", [](RingMemory& memory) { memory.slot(0).length = 99; }},
        Scribble{"InlineButLong", [](RingMemory& memory) { memory.slot(0).offset = Slot::kInline; }},
        Scribble{"OffsetOdd", [](RingMemory& memory) { memory.slot(0).offset = 8; }},
        Scribble{"OffsetBeyondArena",
                 [](RingMemory& memory) { memory.slot(0).offset = memory.geometry.arena_bytes; }},
        Scribble{"OffsetHuge", [](RingMemory& memory) { memory.slot(0).offset = 0xffffffc0; }},
        Scribble{"BlockAcrossTheEnd",
                 [](RingMemory& memory) { memory.slot(0).offset = memory.geometry.arena_bytes - 64; }}),
    [](const auto& test) { return std::string(test.param.name); });

// Anything at all in slots and control page: no crash, and nothing shown that lies outside the memory.
TEST(RingReaderGarbage, IsSurvived) {
  std::uint64_t state = 42;
  const auto random = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 32);
  };
  RingMemory memory;
  const std::byte* begin = memory.bytes().data();
  const std::byte* end = begin + memory.bytes().size();
  int shown = 0;
  for (int round = 0; round < 50'000; ++round) {
    RingReader reader(memory.bytes(), memory.geometry);
    Slot& slot = memory.slot(0);
    slot.sequence = kFirstNumber + 1;
    wire::Segment plausible;
    plausible.kind = static_cast<wire::SegmentKind>(1 + random() % wire::kSegmentKindLast);
    plausible.length = random() % 3 == 0 ? random() : random() % 70'000;
    slot.header_size = static_cast<std::uint8_t>(wire::encode(plausible, slot.inline_bytes));
    slot.length = plausible.length;
    slot.offset = random() % 2 == 0 ? Slot::kInline : (random() % 70'000) & ~63u;
    if (random() % 4 == 0) slot.inline_bytes[random() % 48] = static_cast<std::byte>(random());
    if (random() % 8 == 0) slot.header_size = static_cast<std::uint8_t>(random());
    memory.slot(1).sequence = random() % 2 == 0 ? kFirstNumber + 2 : random() % 3;
    wire::Segment segment;
    ConstBytes payload;
    for (int i = 0; i < 3 && reader.peek(segment, payload); ++i) {
      ++shown;
      ASSERT_EQ(payload.size(), segment.length);
      if (payload.size() > Slot::kInlineBytes) {
        ASSERT_GE(payload.data(), begin);
        ASSERT_LE(payload.data() + payload.size(), end);
      }
      reader.pop();
    }
  }
  EXPECT_GT(shown, 1000) << "the garbage must be good enough to get through now and then";
}

}  // namespace
}  // namespace cluster::shm
