// The short forms of the headers of a whole eager message, a whole write and an answer: the same bytes as
// encode() writes, and nothing else is taken for one.
#include <gtest/gtest.h>

#include <array>

#include "wire/segment.h"

namespace cluster::wire {
namespace {

using Header = std::array<std::byte, kSegmentHeaderMax>;
constexpr std::uint64_t kTag = 0x1122334455667788, kData = 0x99aabbccddeeff00;

TEST(EagerHeaderTest, WritesWhatEncodeWritesAndReadsItBack) {
  for (const bool tagged : {false, true}) {
    for (const bool has_data : {false, true}) {
      EagerHeader header{.length = 40, .tagged = tagged, .has_data = has_data};
      header.tag = tagged ? kTag : 0;
      header.data = has_data ? kData : 0;
      Segment segment;
      segment.flags = static_cast<std::uint8_t>((tagged ? segment_flag::kTagged : 0) |
                                                (has_data ? segment_flag::kData : 0));
      segment.length = 40;
      segment.tag = header.tag;
      segment.data = header.data;
      alignas(8) Header written{}, expected{};
      header.write(written.data());
      EXPECT_EQ(encode(segment, expected.data()), header.size());
      EXPECT_EQ(written, expected);
      EagerHeader read;
      ASSERT_TRUE(read.read(expected.data()));
      EXPECT_EQ(read.length, 40u);
      EXPECT_EQ(read.tagged, tagged);
      EXPECT_EQ(read.has_data, has_data);
      EXPECT_EQ(read.tag, header.tag);
      EXPECT_EQ(read.data, header.data);
    }
  }
}

TEST(EagerHeaderTest, TakesNothingElseForOne) {
  for (unsigned kind = 0; kind < 256; ++kind) {
    for (unsigned flags = 0; flags < 256; ++flags) {
      for (const std::uint16_t detail : {0, 1, 0x100}) {
        alignas(8) Header bytes{};
        bytes[0] = static_cast<std::byte>(kind);
        bytes[1] = static_cast<std::byte>(flags);
        bytes[2] = static_cast<std::byte>(detail & 0xff);
        bytes[3] = static_cast<std::byte>(detail >> 8);
        const bool plain = kind == static_cast<unsigned>(SegmentKind::eager) && detail == 0 &&
                           (flags & ~unsigned{segment_flag::kTagged | segment_flag::kData}) == 0;
        EagerHeader header;
        ASSERT_EQ(header.read(bytes.data()), plain) << kind << ' ' << flags << ' ' << detail;
      }
    }
  }
}

TEST(WriteHeaderTest, WritesWhatEncodeWritesAndReadsItBack) {
  for (const bool unanswered : {false, true}) {
    const WriteHeader header{
        .length = 40, .id = 0x12345678, .address = kTag, .key = kData, .unanswered = unanswered};
    const Segment segment{.kind = SegmentKind::write,
                          .flags = unanswered ? segment_flag::kUnanswered : std::uint8_t{0},
                          .length = 40,
                          .id = 0x12345678,
                          .offset = kTag,
                          .total = 40,
                          .key = kData};
    Header written{}, expected{};
    header.write(written.data());
    EXPECT_EQ(encode(segment, expected.data()), WriteHeader::size());
    EXPECT_EQ(written, expected);
    WriteHeader read;
    ASSERT_EQ(read.read(expected.data()), !unanswered);
    if (unanswered) continue;
    EXPECT_EQ(read.length, 40u);
    EXPECT_EQ(read.id, 0x12345678u);
    EXPECT_EQ(read.address, kTag);
    EXPECT_EQ(read.key, kData);
  }
}

TEST(WriteHeaderTest, TakesNothingElseForOne) {
  for (unsigned bit = 0; bit < WriteHeader::size() * 8; ++bit) {
    Header bytes{};
    WriteHeader{.length = 8, .id = 1, .address = 2, .key = 3}.write(bytes.data());
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    const bool length = bit >= 32 && bit < 64, total = bit >= 160 && bit < 224;
    WriteHeader header;
    EXPECT_EQ(header.read(bytes.data()), bit >= 32 && !length && !total) << "bit " << bit;
  }
}

TEST(AnswerHeaderTest, WritesWhatEncodeWritesAndTakesNothingElseForOne) {
  Header written{}, expected{};
  AnswerHeader{0x12345678}.write(written.data());
  EXPECT_EQ(encode({.kind = SegmentKind::done, .id = 0x12345678}, expected.data()), AnswerHeader::size());
  EXPECT_EQ(written, expected);
  AnswerHeader read;
  ASSERT_TRUE(read.read(expected.data()));
  EXPECT_EQ(read.id, 0x12345678u);
  for (unsigned bit = 0; bit < 64; ++bit) {
    Header bytes = expected;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(read.read(bytes.data())) << "bit " << bit;
  }
}

}  // namespace
}  // namespace cluster::wire
