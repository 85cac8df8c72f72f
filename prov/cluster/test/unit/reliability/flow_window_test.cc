// What leaves a flow and when: packing, order, windows, back-pressure, tokens.
#include <gtest/gtest.h>

#include "support/frame_tap.h"

namespace cluster::test {
namespace {

TEST(FlowPacking, SmallSegmentsShareAFrame) {
  FlowPair pair(1);
  open_session(pair);
  FrameTap tap(pair.network);
  for (int i = 0; i < 40; ++i) pair.a.send_small(8);
  pair.a.turn();
  ASSERT_EQ(tap.frames.size(), 1u);
  EXPECT_TRUE(tap.frames[0].ordered());
  EXPECT_TRUE(tap.frames[0].ack_now()) << "an operation waits for the tokens";
  ASSERT_TRUE(pair.run(100ms));
  pair.b.expect_all_of(pair.a);
}

TEST(FlowPacking, OrderedAndUnorderedSegmentsDoNotShareAFrame) {
  FlowPair pair(1);
  open_session(pair);
  FrameTap tap(pair.network);
  pair.a.send_small(8);
  pair.a.send_bulk(100);
  pair.a.send_small(8);
  pair.a.turn();
  ASSERT_EQ(tap.frames.size(), 3u);
  EXPECT_TRUE(tap.frames[0].ordered());
  EXPECT_FALSE(tap.frames[1].ordered());
  EXPECT_TRUE(tap.frames[2].ordered());
  ASSERT_TRUE(pair.run(100ms));
  pair.b.expect_all_of(pair.a);
}

TEST(FlowPacking, FullBulkFramesAreEquallyLong) {
  FlowPair pair(1);
  open_session(pair);
  FrameTap tap(pair.network);
  for (int i = 0; i < 20; ++i) pair.a.send_bulk(pair.a.full_bulk());
  pair.a.turn();
  ASSERT_EQ(tap.frames.size(), 20u);
  for (const FrameTap::Seen& frame : tap.frames) EXPECT_EQ(frame.size, 1472u);
}

TEST(FlowPacking, ReferencedPayloadInManyPiecesIsGatheredInOrder) {
  FlowPair pair(1);
  open_session(pair);
  const std::vector<std::byte> source = pattern(0, 900);
  for (const std::size_t piece : {900u, 300u, 113u, 60u}) {  // up to 15 pieces: more than a frame refers to
    std::vector<ConstBytes> slices;
    for (std::size_t at = 0; at < source.size(); at += piece) {
      slices.push_back(ConstBytes(source).subspan(at, std::min(piece, source.size() - at)));
    }
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.length = 900;
    ASSERT_TRUE(
        pair.a.flow->queue().post(segment, {slices, 0, 900}, carrier::PayloadMode::reference, 1000 + piece));
    pair.pass(1ms);
    ASSERT_EQ(pair.b.bulk.size(), 1u);
    pair.b.bulk.clear();  // its content was compared on arrival
    EXPECT_TRUE(pair.a.tokens_seen.contains(1000 + piece));
  }
}

TEST(FlowOrder, BulkIsHandedOnWhileOrderedFramesWait) {
  FlowPair pair(1);
  open_session(pair);
  bool first = true;
  pair.network.drop = [&](const FakeNetwork::Packet&, const SocketAddress&) {
    return std::exchange(first, false);
  };
  pair.a.send_small(500);  // lost
  pair.a.send_bulk(700);
  pair.a.send_small(600);
  pair.a.send_bulk(700);
  pair.a.turn();
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.turn();
  EXPECT_EQ(pair.b.bulk.size(), 2u);
  EXPECT_EQ(pair.b.smalls.size(), 1u) << "only the first message";
  ASSERT_TRUE(pair.run(100ms));
  pair.b.expect_all_of(pair.a);
}

TEST(FlowWindow, NeverBeyondThePeersWindow) {
  FakeClock clock;
  FakeNetwork network(clock, 1);
  reliability::FlowSettings narrow;
  narrow.window = 16;
  FlowEnd a(network, 1, 2);
  FlowEnd b(network, 2, 1, narrow);
  a.send_small(1);
  b.send_small(1);
  for (int i = 0; i < 10; ++i) {
    a.turn();
    b.turn();
    clock.advance(20us);
  }
  FrameTap tap(network);
  tap.drop_all = true;
  for (int i = 0; i < 100; ++i) a.send_bulk(1000);
  a.turn();
  a.turn();
  EXPECT_EQ(tap.frames.size(), 16u);
}

/// Only a peer that ignores this side's window sends such frames. The flow counts them and changes nothing
/// else.
TEST(FlowWindow, WhatLiesBeyondItIsRefused) {
  FlowPair pair(1);
  open_session(pair);
  wire::FrameView beyond;
  beyond.flags = wire::frame_flag::kSequenced;
  beyond.session = pair.b.flow->handshake().session();
  beyond.transmission = {100};
  const std::byte padding[] = {
      std::byte{static_cast<unsigned char>(wire::SegmentKind::padding)}, {}, {}, {}, {}, {}, {}, {}};
  beyond.segments = padding;
  const auto window = static_cast<std::uint32_t>(pair.b.settings.window);
  const auto receive = [&](std::uint32_t sequence) {
    beyond.sequence = {sequence};
    return pair.b.flow->receive(pair.clock.now(), beyond, {name_of(1), {}, false});
  };
  const std::uint32_t expected = pair.a.flow->handshake().session() + 1;  // one frame has introduced it
  EXPECT_EQ(receive(expected + window), reliability::ReceiveResult::refused);
  EXPECT_EQ(receive(expected + window + 1000), reliability::ReceiveResult::refused);
  EXPECT_EQ(pair.b.counters.refused_window, 2u);
  EXPECT_TRUE(pair.b.flow->quiet()) << "it is not acknowledged";
  EXPECT_EQ(receive(expected + window - 1), reliability::ReceiveResult::accepted);
  EXPECT_EQ(pair.b.counters.refused_window, 2u);
}

TEST(FlowWindow, SmallestAndLargestWindowsWork) {
  for (const std::uint16_t window : {std::uint16_t{1}, std::uint16_t{8}, std::uint16_t{4096}}) {
    reliability::FlowSettings settings;
    settings.window = window;
    FlowPair pair(window, settings);
    pair.network.conditions = {.loss = 0.02, .delay = 10us, .jitter = 10us};
    for (int i = 0; i < 3000; ++i) {
      pair.a.send_bulk(1000);
      if (i % 3 == 0) pair.b.send_small(700);
    }
    ASSERT_TRUE(pair.run(20s)) << window;
    pair.b.expect_all_of(pair.a);
    pair.a.expect_all_of(pair.b);
  }
}

/// Hands everything on, and notes how many frames came with each call.
class CountingLink final : public link::Link {
 public:
  explicit CountingLink(link::Link& below) : below_(below) {}
  const char* name() const override { return "counting"; }
  std::size_t frame_max() const override { return below_.frame_max(); }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override {
    bursts.push_back(frames.size());
    return below_.send_burst(frames);
  }
  std::size_t receive_burst(std::span<link::InFrame> frames) override { return below_.receive_burst(frames); }
  std::size_t read_path_errors(std::span<link::PathError> some) override {
    return below_.read_path_errors(some);
  }

  std::vector<std::size_t> bursts;

 private:
  link::Link& below_;
};

TEST(FlowWindow, BurstsAreAsLongAsTheLinkTakes) {
  FlowPair pair(1);
  pair.network.conditions = {.delay = 20us};
  open_session(pair);
  for (int i = 0; i < 4000; ++i) pair.a.send_bulk(pair.a.full_bulk());
  ASSERT_TRUE(pair.run(10s));  // the window has found its size
  for (int i = 0; i < 80; ++i) pair.a.send_bulk(pair.a.full_bulk());
  pair.a.pump();
  CountingLink link(pair.a.link);
  pair.a.flow->transmit(pair.clock.now(), link);
  EXPECT_EQ(link.bursts, (std::vector<std::size_t>{link::kBurstMax, 80 - link::kBurstMax}));
  ASSERT_TRUE(pair.run(1s));
}

TEST(FlowWindow, PostRefusesWhatCannotLeave) {
  FlowPair pair(1);
  open_session(pair);
  pair.network.conditions.blackout = true;
  const std::vector<std::byte> payload(1000);
  const std::array<ConstBytes, 1> slices{ConstBytes(payload)};
  wire::Segment segment;
  segment.kind = wire::SegmentKind::bulk;
  segment.length = 1000;
  std::size_t taken = 0;
  for (int round = 0; round < 100; ++round) {
    while (pair.a.flow->queue().post(segment, {slices, 0, 1000}, carrier::PayloadMode::reference, 5)) ++taken;
    pair.a.flow->transmit(pair.clock.now(), pair.a.link);
  }
  EXPECT_LE(taken, 32u + 2 * link::kBurstMax + 3u) << "the congestion window and a short queue";
  EXPECT_GE(taken, 32u);
  EXPECT_FALSE(pair.a.flow->queue().drained());
}

TEST(FlowWindow, PostRefusesWhatNeverFits) {
  FlowPair pair(1);
  const std::vector<std::byte> payload(1400);
  const std::array<ConstBytes, 1> slices{ConstBytes(payload)};
  wire::Segment segment;
  segment.kind = wire::SegmentKind::eager;
  segment.length = 1400;
  EXPECT_LT(pair.a.flow->queue().payload_max(segment), 1400u);
  EXPECT_FALSE(pair.a.flow->queue().post(segment, {slices, 0, 1400}, carrier::PayloadMode::copy, 0));
}

}  // namespace
}  // namespace cluster::test
