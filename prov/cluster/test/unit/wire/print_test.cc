// What frames and segments look like in logs, traces and the dissector: each kind by its name, with all its
// fields.
#include "print/print.h"

#include <gtest/gtest.h>

#include <map>

#include "wire/control.h"

namespace cluster::wire {
namespace {

/// As its reader would see it.
std::string printed(const ControlFrame& frame) {
  FrameView view;
  EXPECT_EQ(admit(frame.bytes(), view), Refusal::none);
  return print(view);
}

TEST(PrintFrame, AResetSaysWhichFrameItRefusesAndWhy) {
  FrameView offending;
  offending.session = 0xABCD;
  offending.sequence = {17};
  offending.transmission = {19};
  EXPECT_EQ(printed(ControlFrame::reset(offending, ResetReason::unknown_session)),
            "reset unknown session session 0xabcd seq 17 tx 19");
  EXPECT_EQ(printed(ControlFrame::reset(offending, ResetReason::stale_epoch, 0x63)),
            "reset stale epoch session 0xabcd seq 17 tx 19 known epoch 0x63");
  EXPECT_EQ(printed(ControlFrame::reset(offending, ResetReason::foreign_source)),
            "reset foreign source session 0xabcd seq 17 tx 19");
}

TEST(PrintFrame, QuestionsAndAnswersShowTheNonceTheyHaveInCommon) {
  EXPECT_EQ(printed(ControlFrame::keep_alive(7, 0)), "keep_alive nonce 7");
  FrameView asked;
  const ControlFrame keep_alive = ControlFrame::keep_alive(7, 0);
  ASSERT_EQ(admit(keep_alive.bytes(), asked), Refusal::none);
  EXPECT_EQ(printed(ControlFrame::alive(asked)), "alive nonce 7");
  EXPECT_EQ(printed(ControlFrame::path_response(asked)), "path_response nonce 7");
  FrameView challenge;
  challenge.kind = FrameKind::path_challenge;
  challenge.sequence = {7};
  EXPECT_EQ(print(challenge), "path_challenge nonce 7");
}

TEST(PrintFrame, QuestionsAboutSiblingsNameTheCaller) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  const ControlFrame request =
      ControlFrame::sibling_request(0x77, 1, rail_block(SocketAddress::v4(ip, 9300)));
  EXPECT_EQ(printed(request), "sibling_request of 10.0.0.1:9300 session 0x77");
  FrameView asked;
  ASSERT_EQ(admit(request.bytes(), asked), Refusal::none);
  EXPECT_EQ(printed(ControlFrame::sibling_response(asked)), "sibling_response of 10.0.0.1:9300 session 0x77");
}

TEST(PrintFrame, InvalidSegmentsAreMarkedAsSuch) {
  std::byte bytes[2 * kSegmentHeaderMax];
  Segment padding;
  padding.kind = SegmentKind::padding;
  const std::size_t size = encode(padding, bytes);
  std::fill(bytes + size, bytes + size + 3, std::byte{0});
  FrameView view;
  view.session = 5;
  view.flags = frame_flag::kSequenced;
  view.segments = {bytes, size};
  EXPECT_EQ(print(view), "flow to 0x5 seq 0 tx 0 1 segment");
  view.segments = {bytes, size + 3};
  EXPECT_EQ(print(view),
            "flow to 0x5 seq 0 tx 0 1 segments and invalid bytes in " + std::to_string(size + 3) + " bytes");
}

TEST(PrintSegment, EveryKindHasAName) {
  std::map<std::string, std::uint8_t> names;
  for (std::uint8_t kind = 1; kind <= kSegmentKindLast; ++kind) {
    Segment segment;
    segment.kind = static_cast<SegmentKind>(kind);
    const std::string text = print(segment);
    EXPECT_TRUE(names.emplace(text, kind).second)
        << text << " is kind " << int(names[text]) << " and " << int(kind);
    EXPECT_NE(text.substr(0, 7), "unknown") << int(kind);
  }
}

TEST(PrintSegment, ShowsWhatIsInIt) {
  Segment segment;
  segment.kind = SegmentKind::announce;
  segment.flags =
      segment_flag::kTagged | segment_flag::kData | segment_flag::kAddress | segment_flag::kConfirm;
  segment.id = 3;
  segment.total = 100000;
  segment.tag = 255;
  segment.data = 16;
  segment.address = 0x7F00;
  EXPECT_EQ(print(segment), "announce length 0 id 3 total 100000 tag 0xff address 0x7f00 data 0x10 confirm");
  segment = {};
  segment.kind = SegmentKind::atomic;
  segment.flags = segment_flag::kMore | segment_flag::kContinues;
  segment.detail = 0x21;
  segment.length = 8;
  segment.key = 5;
  segment.offset = 64;
  EXPECT_EQ(print(segment), "atomic length 8 detail 0x21 key 0x5 offset 64 more continues");
  segment = {};
  segment.kind = SegmentKind::bulk;
  segment.length = 1400;
  segment.peer_id = 9;
  EXPECT_EQ(print(segment), "bulk length 1400 peer id 9");
}

}  // namespace
}  // namespace cluster::wire
