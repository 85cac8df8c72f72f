// Messages cut into bodies: what shares a body, what is cut, and where a member may begin.
#include "group/outgoing_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace cluster::group {
namespace {

constexpr std::size_t kBody = 200;

/// What one body contains: kinds and payload lengths.
std::string shape_of_body(MessageCutter& cutter, std::size_t& ended) {
  std::array<std::byte, kBody> body;
  const MessageCutter::Body filled = cutter.fill(body);
  const std::size_t size = filled.size;
  ended += filled.ended;
  std::string text;
  for (ConstBytes rest(body.data(), size); !rest.empty();) {
    wire::Segment segment;
    const std::size_t header = wire::decode(rest, segment);
    if (header == 0) return text + " invalid";
    const char* const kind = segment.kind == wire::SegmentKind::eager         ? "whole"
                             : segment.kind == wire::SegmentKind::eager_first ? "first"
                                                                              : "next";
    text += (text.empty() ? "" : " ") + std::string(kind) + " " + std::to_string(segment.length);
    rest = rest.subspan(header + segment.length);
  }
  return text;
}

void post(MessageCutter& cutter, std::size_t size) {
  static const std::array<std::byte, 1000> bytes{};
  const ConstBytes slice(bytes.data(), size);
  cutter.post({}, {&slice, 1}, size, false);
}

TEST(MessageCutter, SmallMessagesShareABody) {
  MessageCutter cutter;
  std::size_t ended = 0;
  for (int i = 0; i < 4; ++i) post(cutter, 50);
  EXPECT_EQ(shape_of_body(cutter, ended), "whole 50 whole 50 whole 50");
  EXPECT_EQ(ended, 3u);
  EXPECT_TRUE(cutter.between_messages());
  EXPECT_EQ(shape_of_body(cutter, ended), "whole 50");
  EXPECT_TRUE(cutter.empty());
  EXPECT_EQ(shape_of_body(cutter, ended), "");
}

TEST(MessageCutter, ALongMessageFillsBodies) {
  MessageCutter cutter;
  std::size_t ended = 0;
  post(cutter, 500);
  post(cutter, 10);
  EXPECT_EQ(shape_of_body(cutter, ended), "first 184");
  EXPECT_FALSE(cutter.between_messages());
  EXPECT_EQ(shape_of_body(cutter, ended), "next 192");
  EXPECT_EQ(ended, 0u);
  EXPECT_EQ(shape_of_body(cutter, ended), "next 124 whole 10");
  EXPECT_EQ(ended, 2u);
}

TEST(MessageCutter, EmptyMessagesAreMessages) {
  MessageCutter cutter;
  std::size_t ended = 0;
  post(cutter, 0);
  post(cutter, 0);
  EXPECT_EQ(shape_of_body(cutter, ended), "whole 0 whole 0");
  EXPECT_EQ(ended, 2u);
}

TEST(MessageCutter, KeptBytesMayChange) {
  MessageCutter cutter;
  std::array<std::byte, 4> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const ConstBytes slice(bytes);
  cutter.post({}, {&slice, 1}, bytes.size(), true);
  bytes.fill(std::byte{9});
  std::array<std::byte, kBody> body;
  EXPECT_EQ(cutter.fill(body).size, 12u);
  EXPECT_EQ(body[8], std::byte{1});
}

}  // namespace
}  // namespace cluster::group
