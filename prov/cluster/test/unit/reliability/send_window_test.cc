// The send window alone: states of a frame, cumulative and selective acknowledgement, the queue of
// lost frames, and acknowledgements that no correct peer would send.
#include "reliability/send_window.h"

#include <gtest/gtest.h>

namespace cluster::reliability {
namespace {

std::unique_ptr<FrameBody> body(carrier::Token token = 0) {
  auto made = std::make_unique<FrameBody>(16);
  if (token != 0) made->tokens.push_back(token);
  return made;
}

struct SendWindowTest : testing::Test {
  SendWindow window{64, {}};
  std::uint32_t transmission = 0;
  std::vector<std::byte> payload = std::vector<std::byte>(1000);
  std::vector<AckedStretch> stretches;  ///< of the last acknowledge()

  void send(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      window.push(body(1));
      window.on_sent(window.next(), {++transmission}, Time(1us));
    }
  }
  std::vector<std::uint32_t> acknowledge(std::uint32_t ack, std::vector<wire::SequenceRange> ranges = {}) {
    wire::Ack block;
    for (const wire::SequenceRange& range : ranges) block.ranges[block.count++] = range;
    std::vector<std::uint32_t> arrived;
    const auto on_acked = [&](Sequence s, SentFrame& frame) {
      arrived.push_back(s.value);
      EXPECT_NE(frame.body, nullptr);
      frame.body.reset();
    };
    stretches.clear();
    window.acknowledge({ack}, &block, on_acked, [&](const AckedStretch& stretch) {
      stretches.push_back(stretch);
      for (std::uint32_t i = 0; i < stretch.frames.count; ++i)
        arrived.push_back((stretch.frames.sequence + i).value);
    });
    return arrived;
  }
  /// A run of so many frames, which is sent.
  void send_run(std::uint32_t frames, carrier::Token token = 7) {
    push_run(frames, token);
    window.on_new_sent(frames, {transmission + 1}, Time(1us), 0);
    transmission += frames;
  }
  void push_run(std::uint32_t frames, carrier::Token token = 7) {
    FrameRun run;
    run.first = window.end();
    run.part = 10;
    run.payload = ConstBytes(payload).first(frames * run.part);
    run.token = token;
    window.push_run(run);
  }
};

using Values = std::vector<std::uint32_t>;

TEST_F(SendWindowTest, GrowsAsItFillsAndKeepsEveryFrame) {
  send(10);
  acknowledge(10);  // so that it widens in the middle of a lap
  send(64);
  EXPECT_FALSE(window.has_space(1));
  window.mark_lost({12});
  EXPECT_EQ(acknowledge(10, {{{11}, {12}}, {{70}, {74}}}), (std::vector<std::uint32_t>{11, 70, 71, 72, 73}));
  EXPECT_EQ(window.pop_lost(), (Sequence{12}));
  for (std::uint32_t s = 12; s < 70; ++s) ASSERT_EQ(window.at({s}).transmission, (TransmissionNumber{s + 1}));
}

TEST_F(SendWindowTest, TellsTheMemoryThatItsFramesHold) {
  const std::size_t empty = window.footprint();
  window.push(std::make_unique<FrameBody>(1000));
  const std::size_t one = window.footprint();
  EXPECT_GE(one, empty + sizeof(FrameBody) + 1000);
  window.push(std::make_unique<FrameBody>(5000));
  EXPECT_EQ(window.footprint(), one + (one - empty) + 4000);
  while (window.queued() > 0) window.on_sent(window.next(), {++transmission}, Time(1us));
  acknowledge(2);
  EXPECT_EQ(window.footprint(), empty);
}

TEST_F(SendWindowTest, QueuedThenInFlightThenGone) {
  window.push(body());
  EXPECT_EQ(window.queued(), 1u);
  EXPECT_EQ(window.outstanding(), 0u);
  window.on_sent({0}, {1}, Time(1us));
  EXPECT_EQ(window.queued(), 0u);
  EXPECT_EQ(acknowledge(1), (Values{0}));
  EXPECT_EQ(window.outstanding(), 0u);
  EXPECT_EQ(window.first(), (Sequence{1}));
}

TEST_F(SendWindowTest, EachFrameArrivesOnceHoweverOftenItIsAcknowledged) {
  send(10);
  EXPECT_EQ(acknowledge(2, {{{4}, {6}}, {{8}, {9}}}), (Values{0, 1, 4, 5, 8}));
  EXPECT_TRUE(window.has_gap());
  EXPECT_EQ(acknowledge(2, {{{4}, {6}}, {{8}, {9}}}), Values{});
  EXPECT_EQ(acknowledge(1, {{{3}, {7}}}), (Values{3, 6})) << "an older acknowledgement may still bring news";
  EXPECT_EQ(acknowledge(10), (Values{2, 7, 9}));
  EXPECT_FALSE(window.has_gap());
  EXPECT_FALSE(window.tokens_outstanding());
}

TEST_F(SendWindowTest, TheOldestIsNotTheFrameThatThePeerHolds) {
  send(4);
  EXPECT_EQ(window.oldest(), (Sequence{0}));
  acknowledge(1, {{{2}, {3}}});
  EXPECT_EQ(window.oldest(), (Sequence{1}));
  acknowledge(2);  // 2 is there, but held
  EXPECT_EQ(window.first(), (Sequence{2}));
  EXPECT_EQ(window.oldest(), (Sequence{3}));
}

TEST_F(SendWindowTest, TheOldestFrameIsAcknowledgedByItselfIfItIsTheOnlyNews) {
  send(4);
  EXPECT_EQ(window.acknowledge_oldest({0}), nullptr) << "no news";
  EXPECT_EQ(window.acknowledge_oldest({2}), nullptr) << "two frames";
  EXPECT_EQ(window.outstanding(), 4u);
  SentFrame* const oldest = window.acknowledge_oldest({1});
  ASSERT_NE(oldest, nullptr);
  EXPECT_EQ(oldest->transmission, TransmissionNumber{1});
  EXPECT_NE(oldest->body, nullptr);
  EXPECT_EQ(window.first(), Sequence{1});
  EXPECT_EQ(window.outstanding(), 3u);
  EXPECT_EQ(window.acknowledge_oldest({1}), nullptr);
  acknowledge(1, {{{1}, {2}}});
  EXPECT_EQ(window.acknowledge_oldest({2}), nullptr) << "this frame has been acknowledged before";
  acknowledge(4);
  send_run(2);
  EXPECT_EQ(window.acknowledge_oldest({5}), nullptr) << "a frame of a run has no body";
  EXPECT_EQ(acknowledge(5), (std::vector<std::uint32_t>{4}));
}

TEST_F(SendWindowTest, LostFramesWaitInTheOrderOfTheirVerdicts) {
  send(6);
  window.mark_lost({3});
  window.mark_lost({1});
  window.mark_lost({4});
  EXPECT_EQ(window.pop_lost(), (Sequence{3}));
  window.on_sent({3}, {7}, Time(2us));
  EXPECT_EQ(window.at({3}).sendings, 2u);
  EXPECT_EQ(acknowledge(2), (Values{0, 1})) << "the verdict on 1 was wrong";
  EXPECT_TRUE(window.has_lost());
  EXPECT_EQ(window.pop_lost(), (Sequence{4}));
  EXPECT_FALSE(window.has_lost());
}

TEST_F(SendWindowTest, OnlyTheLatestSendingIsInFlight) {
  send(1);
  EXPECT_EQ(window.at({0}).transmission, (TransmissionNumber{1}));
  window.on_sent({0}, {2}, Time(2us));
  EXPECT_EQ(window.at({0}).transmission, (TransmissionNumber{2}));
  EXPECT_EQ(window.at({0}).state, SentFrame::State::in_flight);
}

TEST_F(SendWindowTest, InvalidAcknowledgementsAreRecognised) {
  send(10);
  acknowledge(4);
  wire::Ack ranges;
  EXPECT_TRUE(window.valid_ack({4}, &ranges));
  EXPECT_TRUE(window.valid_ack({10}, nullptr));
  EXPECT_TRUE(window.valid_ack({0}, nullptr)) << "late, but once true";
  EXPECT_FALSE(window.valid_ack({11}, nullptr));
  EXPECT_FALSE(window.valid_ack({0x90000000}, nullptr));
  ranges.count = 1;
  ranges.ranges[0] = {{6}, {10}};
  EXPECT_TRUE(window.valid_ack({4}, &ranges));
  ranges.ranges[0].end = {11};
  EXPECT_FALSE(window.valid_ack({4}, &ranges));
}

TEST_F(SendWindowTest, SlotsAreUsedAgainLapAfterLap) {
  for (std::uint32_t lap = 0; lap < 100; ++lap) {
    send(50);
    EXPECT_FALSE(window.has_space(15));
    EXPECT_EQ(acknowledge(50 * (lap + 1)).size(), 50u);
    EXPECT_TRUE(window.has_space(64));
  }
}

TEST_F(SendWindowTest, ARunIsAcknowledgedInOneStretch) {
  send_run(20);
  EXPECT_TRUE(window.tokens_outstanding());
  EXPECT_EQ(acknowledge(20).size(), 20u);
  ASSERT_EQ(stretches.size(), 1u);
  EXPECT_EQ(stretches[0].frames.count, 20u);
  EXPECT_EQ(stretches[0].frames.transmission, (TransmissionNumber{1}));
  EXPECT_TRUE(stretches[0].frames.sent_once);
  EXPECT_EQ(stretches[0].token, 7u);
  EXPECT_EQ(stretches[0].run_end, (Sequence{20}));
  EXPECT_EQ(window.outstanding(), 0u);
  EXPECT_FALSE(window.tokens_outstanding());
}

TEST_F(SendWindowTest, ALossInARunConcernsThatFrameAlone) {
  send_run(10);
  EXPECT_EQ(acknowledge(3, {{{4}, {10}}}).size(), 9u);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_EQ(stretches[0].frames.count, 3u);
  EXPECT_EQ(stretches[1].frames.sequence, (Sequence{4}));
  EXPECT_EQ(stretches[1].frames.count, 6u);
  EXPECT_EQ(stretches[0].token, 0u);
  EXPECT_EQ(stretches[1].token, 0u) << "the peer does not have all of it";
  window.mark_lost({3});
  ASSERT_TRUE(window.has_lost());
  EXPECT_EQ(window.pop_lost(), (Sequence{3}));
  ASSERT_NE(window.run_of(window.at({3})), nullptr);
  EXPECT_EQ(window.run_of(window.at({3}))->offset_of({3}), 30u);
  window.on_sent({3}, {++transmission}, Time(2us));
  EXPECT_EQ(acknowledge(10), (Values{3}));
  ASSERT_EQ(stretches.size(), 1u);
  EXPECT_FALSE(stretches[0].frames.sent_once);
  EXPECT_EQ(stretches[0].token, 7u);
}

TEST_F(SendWindowTest, AStretchEndsWhereFramesLeftOtherwise) {
  push_run(12);
  window.on_new_sent(4, {1}, Time(1us), 0);
  window.on_new_sent(4, {5}, Time(2us), 0);   // later, on the same path
  window.on_new_sent(2, {9}, Time(3us), 1);   // on another path
  window.on_new_sent(2, {21}, Time(4us), 1);  // others left between them
  window.mark_lost({1});
  EXPECT_EQ(acknowledge(12).size(), 12u);
  ASSERT_EQ(stretches.size(), 5u);
  EXPECT_EQ(stretches[0].frames.count, 1u);
  EXPECT_EQ(stretches[1].frames.sequence, (Sequence{1}));
  EXPECT_FALSE(stretches[1].frames.sent_once) << "it was held for lost";
  EXPECT_EQ(stretches[2].frames.count, 6u);
  EXPECT_EQ(stretches[2].frames.sent_at, Time(1us));
  EXPECT_EQ(stretches[2].frames.last_sent_at, Time(2us));
  EXPECT_EQ(stretches[3].path, 1u);
  EXPECT_EQ(stretches[3].frames.count, 2u);
  EXPECT_EQ(stretches[4].frames.count, 2u);
  EXPECT_EQ(stretches[4].token, 7u);
  EXPECT_FALSE(window.has_lost());
}

TEST_F(SendWindowTest, RunsAndBodiesFollowEachOtherThroughManyLaps) {
  for (carrier::Token token = 1; token < 40; ++token) {
    send(3);
    send_run(4, token);
    send_run(9, token + 100);
    EXPECT_EQ(acknowledge(transmission).size(), 16u);
    ASSERT_EQ(stretches.size(), 2u);
    EXPECT_EQ(stretches[0].token, token);
    EXPECT_EQ(stretches[1].token, token + 100);
  }
}

}  // namespace
}  // namespace cluster::reliability
