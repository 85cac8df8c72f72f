// What is written in front of stored segments when a frame leaves: it passes the gate and says what it
// should.
#include "reliability/session_frame.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/admit.h"

namespace cluster::reliability {
namespace {

constexpr std::size_t kFrameMax = 1472;
constexpr std::byte kIp[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};

wire::Opening opening_of(std::uint32_t session) {
  wire::Opening opening;
  opening.session = session;
  opening.epoch = 3;
  opening.name = SocketAddress::v4(kIp, 7);
  opening.frame_max = kFrameMax;
  opening.window = 64;
  return opening;
}

struct SessionFrameTest : testing::Test {
  std::vector<std::byte> encode(FrameBody& body) {
    const OutgoingAck ack(Time(1us), acks, window);
    link::OutFrame out;
    included = encode_session_frame({wire::FrameKind::flow, wire::frame_flag::kSequenced, {11}, {12}},
                                    handshake, limits, ack, body, out);
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < out.count; ++i) {
      bytes.insert(bytes.end(), out.pieces[i].begin(), out.pieces[i].end());
    }
    return bytes;
  }
  static std::unique_ptr<FrameBody> padding(std::size_t size) {
    auto body = std::make_unique<FrameBody>(wire::kSegmentHeaderMax);
    body->set_padding(size);
    return body;
  }
  /// The peer has our opening.
  void open() {
    wire::FrameView view;
    view.has_opening = true;
    view.opening = opening_of(2000);
    view.session = 1000;
    view.flags = wire::frame_flag::kAcknowledges;
    ASSERT_TRUE(handshake.accept(view, view.opening.name));
    handshake.confirm(view);
  }

  FrameLimits limits{kFrameMax};
  Handshake handshake{opening_of(1000), {SocketAddress::v4(kIp, 8)}};
  ReceiveWindow window{64};
  AckScheduler acks{25us};
  AckIncluded included = AckIncluded::none;
};

TEST_F(SessionFrameTest, CarriesTheOpeningUntilThePeerHasIt) {
  const auto body = padding(200);
  const std::vector<std::byte> first = encode(*body);
  wire::FrameView view;
  ASSERT_EQ(wire::admit(first, view), wire::Refusal::none);
  ASSERT_TRUE(view.has_opening);
  EXPECT_EQ(view.opening.session, 1000u);
  EXPECT_EQ(wire::read_rails(view.rails).size(), 1u);
  EXPECT_EQ(view.session, 0u);
  EXPECT_EQ(view.segments.size(), 200u);
  open();
  const std::vector<std::byte> later = encode(*body);
  ASSERT_EQ(wire::admit(later, view), wire::Refusal::none);
  EXPECT_FALSE(view.has_opening);
  EXPECT_EQ(view.session, 2000u);
  EXPECT_EQ(view.sequence, (Sequence{11}));
  EXPECT_EQ(view.transmission, (TransmissionNumber{12}));
  EXPECT_EQ(view.segments.size(), 200u);
}

TEST_F(SessionFrameTest, CarriesTheAcknowledgementThatFits) {
  open();
  const std::byte content{1};
  window.arrive({4}, {5}, false, {&content, 1});
  acks.on_frame(Time(1us), Time(1us), {5}, AckScheduler::Urgency::now);
  const auto half = padding(700);
  const std::vector<std::byte> bytes = encode(*half);
  wire::FrameView view;
  ASSERT_EQ(wire::admit(bytes, view), wire::Refusal::none);
  EXPECT_EQ(included, AckIncluded::block);
  ASSERT_TRUE(view.acknowledges() && view.has_ranges);
  EXPECT_EQ(view.ranges.ranges[0], (wire::SequenceRange{{4}, {5}}));
  const auto full = padding(kFrameMax - sizeof(wire::FrameHeader));
  const std::vector<std::byte> packed = encode(*full);
  ASSERT_EQ(wire::admit(packed, view), wire::Refusal::none);
  EXPECT_EQ(included, AckIncluded::none);
  EXPECT_FALSE(view.acknowledges());
  EXPECT_EQ(packed.size(), kFrameMax);
}

TEST_F(SessionFrameTest, PaddingIsAsLongAsAskedAndHasAHeaderAtLeast) {
  EXPECT_EQ(padding(0)->size(), wire::encoded_size(wire::Segment{.kind = wire::SegmentKind::padding}));
  for (const std::size_t size : {8u, 9u, 1440u, 8940u, 65000u}) EXPECT_EQ(padding(size)->size(), size);
}

std::uint32_t checksum_of(ConstBytes frame) {
  wire::FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  return header.checksum;
}

TEST_F(SessionFrameTest, NoChecksumIsMadeForWhatWillBeSealed) {
  FrameRun run;
  run.segment = {.kind = wire::SegmentKind::bulk, .length = 1000};
  const std::vector<std::byte> payload(3000);
  run.payload = payload;
  run.part = 1000;
  for (const auto integrity : {wire::Integrity::checksum, wire::Integrity::seal}) {
    limits.integrity = integrity;
    const bool sealed = integrity == wire::Integrity::seal;
    EXPECT_EQ(checksum_of(encode(*padding(200))) == 0, sealed);
    const OutgoingAck ack(Time(1us), acks, window);
    RunEncoder encoder(run, handshake, limits, ack);
    RunEncoder::Front front;
    link::OutFrame out;
    encoder.encode({wire::FrameKind::flow, wire::frame_flag::kSequenced, run.first, {12}}, front, out);
    EXPECT_EQ(checksum_of(out.pieces[0]) == 0, sealed);
  }
}

TEST_F(SessionFrameTest, FramesOfARunCarryTheirPartsInAnyOrder) {
  std::vector<std::byte> payload(5000);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 37 >> 3);
  FrameRun run;
  run.first = {0xfffffffe};
  run.segment = {.kind = wire::SegmentKind::bulk, .length = 1000, .peer_id = 9, .offset = 70'000};
  run.payload = payload;
  run.part = 1000;
  for (const bool opened : {false, true}) {
    if (opened) open();
    const OutgoingAck ack(Time(1us), acks, window);
    RunEncoder encoder(run, handshake, limits, ack);
    for (const std::uint32_t i : {3u, 0u, 4u}) {
      RunEncoder::Front front;
      link::OutFrame out;
      encoder.encode({wire::FrameKind::flow, wire::frame_flag::kSequenced, run.first + i, {12 + i}}, front,
                     out);
      std::vector<std::byte> bytes;
      for (const ConstBytes piece : std::span(out.pieces).first(out.count))
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      wire::FrameView view;
      ASSERT_EQ(wire::admit(bytes, view), wire::Refusal::none);
      EXPECT_EQ(view.has_opening, !opened);
      EXPECT_EQ(view.sequence, run.first + i);
      EXPECT_EQ(view.transmission, (TransmissionNumber{12 + i}));
      wire::Segment segment;
      const std::size_t header = wire::decode(view.segments, segment);
      EXPECT_EQ(segment.offset, 70'000u + 1000 * i);
      EXPECT_EQ(segment.peer_id, 9u);
      ASSERT_EQ(segment.length, 1000u);
      ASSERT_EQ(view.segments.size(), header + 1000);
      EXPECT_EQ(std::memcmp(&view.segments[header], &payload[1000 * i], 1000), 0);
    }
  }
}

}  // namespace
}  // namespace cluster::reliability
