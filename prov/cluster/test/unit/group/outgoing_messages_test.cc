// Messages cut into bodies: what shares a body, what is cut, and where a member may begin.
#include "group/outgoing_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace cluster::group {
namespace {

constexpr std::size_t kBody = 200;

/// What one body contains: kinds and payload lengths.
std::string shape_of_body(OutgoingMessages& messages, std::size_t& ended) {
  std::array<std::byte, kBody> body;
  const std::size_t size = messages.cut(body, 1);
  for (; !messages.finished().empty(); messages.finished().pop_front()) ++ended;
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

void post(OutgoingMessages& messages, std::size_t size) {
  static const std::array<std::byte, 1000> bytes{};
  const ConstBytes slice(bytes.data(), size);
  messages.post({}, {&slice, 1}, size, false, Until::copied, 1);
}

TEST(OutgoingMessages, SmallMessagesShareABody) {
  OutgoingMessages messages;
  std::size_t ended = 0;
  for (int i = 0; i < 4; ++i) post(messages, 50);
  EXPECT_EQ(shape_of_body(messages, ended), "whole 50 whole 50 whole 50");
  EXPECT_EQ(ended, 3u);
  EXPECT_TRUE(messages.between());
  EXPECT_EQ(shape_of_body(messages, ended), "whole 50");
  EXPECT_TRUE(messages.all_cut());
  EXPECT_EQ(shape_of_body(messages, ended), "");
}

TEST(OutgoingMessages, ALongMessageFillsBodies) {
  OutgoingMessages messages;
  std::size_t ended = 0;
  post(messages, 500);
  post(messages, 10);
  EXPECT_EQ(shape_of_body(messages, ended), "first 184");
  EXPECT_FALSE(messages.between());
  EXPECT_EQ(shape_of_body(messages, ended), "next 192");
  EXPECT_EQ(ended, 0u);
  EXPECT_EQ(shape_of_body(messages, ended), "next 124 whole 10");
  EXPECT_EQ(ended, 2u);
}

TEST(OutgoingMessages, EmptyMessagesAreMessages) {
  OutgoingMessages messages;
  std::size_t ended = 0;
  post(messages, 0);
  post(messages, 0);
  EXPECT_EQ(shape_of_body(messages, ended), "whole 0 whole 0");
  EXPECT_EQ(ended, 2u);
}

TEST(OutgoingMessages, KeptBytesMayChange) {
  OutgoingMessages messages;
  std::array<std::byte, 4> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const ConstBytes slice(bytes);
  messages.post({}, {&slice, 1}, bytes.size(), true, Until::copied, 1);
  bytes.fill(std::byte{9});
  std::array<std::byte, kBody> body;
  EXPECT_EQ(messages.cut(body, 1), 12u);
  EXPECT_EQ(body[8], std::byte{1});
}

TEST(OutgoingMessages, OneThatIsCutInPartFailsWithItsListener) {
  OutgoingMessages messages;
  static const std::array<std::byte, 500> bytes{};
  const ConstBytes slice(bytes);
  for (const MessageToken token : {1u, 2u}) {
    messages.post({}, {&slice, 1}, slice.size(), false, Until::arrived, token);
  }
  std::array<std::byte, kBody> body;
  EXPECT_EQ(messages.cut(body, 1), kBody);
  EXPECT_FALSE(messages.between());
  const std::byte ip[4] = {std::byte{10}, {}, {}, std::byte{7}};
  const SocketAddress lost = SocketAddress::v4(ip, 7000);
  messages.fail(lost, 0, Status::unreachable);
  std::uint64_t end = 1;
  while (!messages.all_cut()) messages.cut(body, ++end);
  messages.advance(end, end);
  ASSERT_FALSE(messages.finished().empty());
  EXPECT_EQ(messages.finished().front().token, 1u);
  EXPECT_EQ(messages.finished().front().status, Status::unreachable);
  EXPECT_EQ(messages.finished().front().culprit, lost);
  messages.finished().pop_front();
  ASSERT_FALSE(messages.finished().empty());
  EXPECT_EQ(messages.finished().front().status, Status::ok) << "no part of it was for the lost listener";
}

}  // namespace
}  // namespace cluster::group
