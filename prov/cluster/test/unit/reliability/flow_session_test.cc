// Beginning and end of a session: first contact from either side or both, restarts, stale frames, goodbyes.
#include <gtest/gtest.h>

#include "reliability/handshake.h"
#include "support/flow_pair.h"
#include "support/recording_link.h"

namespace cluster::test {
namespace {

using reliability::ReceiveResult;

const link::Path kFromA{name_of(1), {}, false};
const link::Path kFromB{name_of(2), {}, false};

TEST(FlowSession, FirstContactCostsOneRoundTrip) {
  FlowPair pair(1);
  for (int i = 0; i < 6; ++i) pair.a.send_small(1000);
  for (int way = 0; way < 3; ++way) {
    EXPECT_TRUE(pair.b.smalls.empty());
    pair.a.turn();
    pair.b.turn();
    pair.clock.advance(pair.network.conditions.delay);
  }
  pair.b.turn();
  EXPECT_EQ(pair.b.smalls.size(), 6u) << "there, back, and there";
  EXPECT_EQ(pair.a.counters.timeouts, 0u);
}

TEST(FlowSession, NoChecksumIsMadeForALinkThatSeals) {
  for (const std::size_t overhead : {std::size_t{0}, sizeof(wire::SealTrailer)}) {
    FlowPair pair(1);
    RecordingLink recorded;
    recorded.overhead = overhead;
    pair.a.send_small(1000);
    pair.a.pump();
    pair.a.flow->transmit(pair.clock.now(), recorded);
    ASSERT_FALSE(recorded.frames.empty());
    wire::FrameHeader header;
    std::memcpy(&header, recorded.frames[0].data(), sizeof header);
    EXPECT_EQ(header.checksum == 0u, overhead != 0);
  }
}

TEST(FlowSession, OpensFromOneSide) {
  FlowPair pair(1);
  pair.a.send_small(100);
  ASSERT_TRUE(pair.run(100ms));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(pair.a.flow->handshake().peer_session(), pair.b.flow->handshake().session());
  EXPECT_EQ(pair.b.flow->handshake().peer_session(), pair.a.flow->handshake().session());
  EXPECT_EQ(pair.a.flow->handshake().peer_epoch(), 1u);
  EXPECT_EQ(pair.a.counters.sessions_opened, 1u);
  EXPECT_EQ(pair.b.counters.sessions_opened, 1u);
}

TEST(FlowSession, OpensFromBothSidesAtOnceOverALossyNetwork) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    FlowPair pair(seed);
    pair.network.conditions.loss = 0.5;
    for (int i = 0; i < 30; ++i) {
      pair.a.send_small(600);
      pair.b.send_small(600);
    }
    ASSERT_TRUE(pair.run(8s)) << "seed " << seed;
    pair.b.expect_all_of(pair.a);
    pair.a.expect_all_of(pair.b);
  }
}

TEST(FlowSession, OneFrameBeforeThePeerAnswers) {
  FlowPair pair(1);
  RecordingLink recorded;
  for (int i = 0; i < 40; ++i) pair.a.send_small(1000);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  ASSERT_EQ(recorded.frames.size(), 1u);
  const wire::FrameView call = recorded.read(0);
  EXPECT_TRUE(call.has_opening && call.ack_now());
  EXPECT_EQ(call.session, 0u);
  EXPECT_LE(call.length, 1232u);
}

TEST(FlowSession, FramesGoWithoutTheOpeningOnceItIsAnswered) {
  FlowPair pair(1);
  pair.a.send_small(10);
  ASSERT_TRUE(pair.run(100ms));
  RecordingLink recorded;
  pair.a.send_small(10);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  ASSERT_EQ(recorded.frames.size(), 1u);
  EXPECT_FALSE(recorded.read(0).has_opening);
  EXPECT_EQ(recorded.read(0).session, pair.b.flow->handshake().session());
}

TEST(FlowSession, SmallerPeerSettlesTheFrameSize) {
  FakeClock clock;
  FakeNetwork network(clock, 1);
  reliability::FlowSettings jumbo;
  jumbo.frame_max = 8972;
  FlowEnd large(network, 1, 2, jumbo);
  FlowEnd small(network, 2, 1);
  EXPECT_LE(large.full_bulk(), 1232u);
  large.send_small(10);
  for (int i = 0; i < 8; ++i) {
    large.turn();
    small.turn();
    clock.advance(20us);
  }
  EXPECT_EQ(large.full_bulk(), 1472u - 32 - 20);
  EXPECT_EQ(large.full_bulk(), small.full_bulk());
}

TEST(FlowSession, FramesOfAnotherSessionAreRefused) {
  FlowPair pair(1);
  pair.a.send_small(10);
  ASSERT_TRUE(pair.run(100ms));
  RecordingLink recorded;
  FlowEnd other(pair.network, 1, 2, {}, 77);
  other.send_small(10);
  other.pump();
  other.flow->transmit(pair.clock.now(), recorded);
  wire::FrameView view = recorded.read(0);
  EXPECT_EQ(pair.b.flow->receive(pair.clock.now(), view, kFromA), ReceiveResult::refused);
  view.session = pair.b.flow->handshake().session();
  EXPECT_EQ(pair.b.flow->receive(pair.clock.now(), view, kFromA), ReceiveResult::refused);
  view.session = pair.b.flow->handshake().session() + 1;
  view.has_opening = false;
  EXPECT_EQ(pair.b.flow->receive(pair.clock.now(), view, kFromA), ReceiveResult::refused);
  EXPECT_EQ(pair.b.counters.refused_stale, 3u);
  EXPECT_EQ(pair.b.flow->status(), Status::ok);
}

TEST(FlowSession, AcknowledgementsOfWhatWasNeverSentAreRefused) {
  FlowPair pair(1);
  pair.a.send_small(10);
  ASSERT_TRUE(pair.run(100ms));
  const Sequence first = reliability::first_sequence(pair.a.flow->handshake().session());
  wire::FrameView lie;
  lie.flags = wire::frame_flag::kAcknowledges;
  lie.session = pair.a.flow->handshake().session();
  lie.ack = first + 5;
  EXPECT_EQ(pair.a.flow->receive(pair.clock.now(), lie, kFromB), ReceiveResult::refused);
  lie.ack = first + 1;
  lie.largest_acked = {100};
  EXPECT_EQ(pair.a.flow->receive(pair.clock.now(), lie, kFromB), ReceiveResult::refused);
  lie.largest_acked = {1};
  lie.has_ranges = true;
  lie.ranges.count = 1;
  lie.ranges.ranges[0] = {first + 2, first + 9};
  EXPECT_EQ(pair.a.flow->receive(pair.clock.now(), lie, kFromB), ReceiveResult::refused);
  lie.has_ranges = false;
  EXPECT_EQ(pair.a.flow->receive(pair.clock.now(), lie, kFromB), ReceiveResult::nothing_new);
  EXPECT_EQ(pair.a.counters.refused_window, 3u);
}

/// Any of the many old places is guessed sooner than one of the present ones.
TEST(FlowSession, AnOldPlaceDoesNotSayWhereThePeerIs) {
  constexpr std::size_t kFrames = 10;
  FlowPair pair(1);
  for (std::size_t i = 0; i < kFrames; ++i) pair.a.send_small(1000);
  ASSERT_TRUE(pair.run(100ms));
  reliability::Flow& a = *pair.a.flow;
  reliability::Flow& b = *pair.b.flow;
  const Sequence first = reliability::first_sequence(a.handshake().session());
  ASSERT_EQ(a.queue().window().first() - first, static_cast<std::int32_t>(kFrames));
  const auto sends_to_a_mac = [](reliability::Flow& flow) { return flow.paths()[0].address.mac_known; };
  const auto elsewhere = [](std::uint8_t node) { return link::Path{name_of(node), {std::byte{0xEE}}, true}; };

  wire::FrameView acknowledgement;
  acknowledgement.flags = wire::frame_flag::kAcknowledges;
  acknowledgement.session = a.handshake().session();
  acknowledgement.ack = first + kFrames / 2;
  acknowledgement.largest_acked = {1};
  EXPECT_EQ(a.receive(pair.clock.now(), acknowledgement, elsewhere(2)), ReceiveResult::nothing_new);
  EXPECT_FALSE(sends_to_a_mac(a));
  acknowledgement.ack = first + kFrames;
  EXPECT_EQ(a.receive(pair.clock.now(), acknowledgement, elsewhere(2)), ReceiveResult::nothing_new);
  EXPECT_TRUE(sends_to_a_mac(a)) << "of what is acknowledged so far";

  wire::FrameView data;
  data.flags = wire::frame_flag::kSequenced;
  data.session = b.handshake().session();
  data.sequence = first + -30'000;
  EXPECT_EQ(b.receive(pair.clock.now(), data, elsewhere(1)), ReceiveResult::late);
  EXPECT_FALSE(sends_to_a_mac(b));
  data.sequence = first + (kFrames - 1);
  EXPECT_EQ(b.receive(pair.clock.now(), data, elsewhere(1)), ReceiveResult::nothing_new);
  EXPECT_TRUE(sends_to_a_mac(b)) << "a copy of what the peer may repeat";
}

/// A frame of many bytes comes in parts. One part, of whatever frame, does not say where the peer is, and one of a frame that
/// cannot come any more is not even a sign of life.
TEST(FlowSession, APartDoesNotSayWhereThePeerIs) {
  FlowPair pair(1);
  for (int i = 0; i < 10; ++i) pair.a.send_small(1000);
  ASSERT_TRUE(pair.run(100ms));
  reliability::Flow& b = *pair.b.flow;
  const Sequence next = reliability::first_sequence(pair.a.flow->handshake().session()) + 10u;
  const link::Path elsewhere{name_of(1), {std::byte{0xEE}}, true};
  const std::byte bytes[50]{};
  wire::FrameView part;
  part.flags = wire::frame_flag::kSequenced | wire::frame_flag::kPart;
  part.session = b.handshake().session();
  part.part.number = 0;
  part.part.count = 2;
  part.part.total = 2 * sizeof bytes;
  part.segments = bytes;
  for (const std::int32_t back : {70'000, 1'000'000'000, 2'000'000'000}) {
    pair.clock.advance(10ms);
    part.sequence = next + -back;
    EXPECT_EQ(b.receive(pair.clock.now(), part, elsewhere), ReceiveResult::refused) << back;
    EXPECT_LT(b.stats().heard_at, pair.clock.now()) << back;
  }
  part.sequence = next + -30'000;
  EXPECT_EQ(b.receive(pair.clock.now(), part, elsewhere), ReceiveResult::late);
  part.sequence = next;
  EXPECT_EQ(b.receive(pair.clock.now(), part, elsewhere), ReceiveResult::incomplete);
  EXPECT_FALSE(b.paths()[0].address.mac_known);
  part.part.number = 1;
  EXPECT_EQ(b.receive(pair.clock.now(), part, elsewhere), ReceiveResult::accepted);
  EXPECT_TRUE(b.paths()[0].address.mac_known) << "the whole frame";
}

/// A hardware address that nothing comes from any more may be another's: the kernel is asked.
TEST(FlowSession, WithoutAnswersTheHardwareAddressIsForgotten) {
  FlowPair pair(1);
  pair.a.send_small(1000);
  pair.b.send_small(1000);
  ASSERT_TRUE(pair.run(100ms));
  reliability::Flow& a = *pair.a.flow;
  wire::FrameView copy;
  copy.flags = wire::frame_flag::kSequenced;
  copy.session = a.handshake().session();
  copy.sequence = reliability::first_sequence(pair.b.flow->handshake().session());
  ASSERT_EQ(a.receive(pair.clock.now(), copy, {name_of(2), {std::byte{0xEE}}, true}),
            ReceiveResult::nothing_new);
  ASSERT_TRUE(a.paths()[0].address.mac_known);
  pair.network.drop = [](const auto&, const auto&) { return true; };
  pair.a.send_small(1000);
  pair.pass(200ms);
  EXPECT_GE(a.paths()[0].address.doubts, 8) << "after which a link asks all hosts for it";
  pair.pass(1800ms);
  EXPECT_FALSE(a.paths()[0].address.mac_known);
  pair.network.drop = nullptr;
  EXPECT_TRUE(pair.run(3s));
  pair.b.expect_all_of(pair.a);
  EXPECT_EQ(a.paths()[0].address.doubts, 0) << "the peer has been heard";
}

TEST(FlowSession, ARestartedPeerBeginsANewFlow) {
  FlowPair pair(1);
  for (int i = 0; i < 20; ++i) pair.a.send_small(1000);
  ASSERT_TRUE(pair.run(100ms));
  // The peer forgets everything; its frames now belong to a later incarnation.
  pair.b.begin(2);
  pair.b.send_small(10);
  pair.b.pump();
  RecordingLink recorded;
  pair.b.flow->transmit(pair.clock.now(), recorded);
  const wire::FrameView view = recorded.read(0);
  const reliability::PeerSession known{pair.a.flow->handshake().peer_epoch(),
                                       pair.a.flow->handshake().peer_session()};
  EXPECT_EQ(reliability::classify_opening(known, view.opening), reliability::OpeningClass::newer);
  EXPECT_EQ(pair.a.flow->receive(pair.clock.now(), view, kFromB), ReceiveResult::refused);
  pair.a.begin(2);
  ASSERT_TRUE(pair.run(1s));
  EXPECT_EQ(pair.a.smalls.size(), 1u);
}

/// A host that guesses the session of a frame has not guessed its sequence.
TEST(FlowSession, SequencesBeginWithTheSessionThatTheSenderNamesNotWithThatOfTheFrame) {
  FlowPair pair(1);
  RecordingLink recorded;
  pair.a.send_small(10);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  const wire::FrameView view = recorded.read(0);
  EXPECT_EQ(view.sequence.value, view.opening.session);
  EXPECT_NE(pair.a.flow->handshake().session(), pair.b.flow->handshake().session());
}

TEST(FlowSession, AResetIsValidIfItQuotesAFrameInFlight) {
  FlowPair pair(1);
  RecordingLink recorded;
  pair.a.send_small(10);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  wire::ResetBlock block{};
  block.session = 0;
  block.sequence = pair.a.flow->handshake().session();
  block.transmission = 1;
  EXPECT_FALSE(pair.a.flow->validates_reset(block, kFromB.to))
      << "it can be forged without having seen a frame";
  block.session = pair.a.flow->handshake().session();
  EXPECT_TRUE(pair.a.flow->validates_reset(block, kFromB.to));
  block.transmission = 2;
  EXPECT_FALSE(pair.a.flow->validates_reset(block, kFromB.to));
  block.transmission = 1;
  block.session = 4711;
  EXPECT_FALSE(pair.a.flow->validates_reset(block, kFromB.to));
  block.session = pair.a.flow->handshake().session();
  block.sequence = pair.a.flow->handshake().session() + 1;
  EXPECT_FALSE(pair.a.flow->validates_reset(block, kFromB.to));
}

/// Several incarnations of one name may have used the same session number, each with its own first frame.
TEST(FlowSession, AResetForAStaleEpochConcernsSmallerEpochsOnly) {
  constexpr std::uint64_t own = 1;
  FlowPair pair(own);
  pair.a.send_small(100);
  ASSERT_TRUE(pair.run(100ms));
  RecordingLink recorded;
  pair.a.send_small(10);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  const wire::FrameView view = recorded.read(0);
  wire::ResetBlock block{};
  block.session = view.session;
  block.sequence = view.sequence.value;
  block.transmission = view.transmission.value;
  block.reason = static_cast<std::uint8_t>(wire::ResetReason::stale_epoch);
  block.epoch = own;
  EXPECT_FALSE(pair.a.flow->validates_reset(block, kFromB.to)) << "the peer knows this incarnation";
  block.epoch = own + 1;
  EXPECT_TRUE(pair.a.flow->validates_reset(block, kFromB.to));
  block.epoch = 0;
  block.reason = static_cast<std::uint8_t>(wire::ResetReason::unknown_session);
  EXPECT_TRUE(pair.a.flow->validates_reset(block, kFromB.to));
}

TEST(FlowSession, FinAfterDataLosesNeitherDataNorTheLastAcknowledgement) {
  FlowPair pair(1);
  for (int i = 0; i < 100; ++i) pair.a.send_small(1000);
  pair.b.send_small(8);
  pair.pass(5ms);
  pair.b.send_small(9);
  pair.b.turn();
  pair.clock.advance(pair.network.conditions.delay);
  pair.a.receive();  // and closes before it has acknowledged by itself
  pair.a.flow->close(pair.clock.now(), pair.a.link);
  EXPECT_EQ(pair.a.flow->status(), Status::canceled);
  pair.clock.advance(pair.network.conditions.delay);
  pair.b.turn();
  pair.b.expect_all_of(pair.a);
  pair.a.expect_all_of(pair.b);
  EXPECT_EQ(pair.b.flow->status(), Status::reset);
}

TEST(FlowSession, FinThatOvertakesDataWaitsForIt) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(100ms));
  RecordingLink recorded;
  pair.a.send_small(9);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  pair.a.flow->close(pair.clock.now(), recorded);
  ASSERT_GE(recorded.frames.size(), 2u);
  EXPECT_EQ(pair.b.flow->receive(pair.clock.now(), recorded.read(1), kFromA), ReceiveResult::nothing_new);
  EXPECT_EQ(pair.b.flow->status(), Status::ok);
  EXPECT_EQ(pair.b.flow->receive(pair.clock.now(), recorded.read(0), kFromA), ReceiveResult::accepted);
  EXPECT_EQ(pair.b.flow->status(), Status::ok) << "it has not been handed on yet";
  ConstBytes segments;
  EXPECT_TRUE(pair.b.flow->receiver().next(segments));
  EXPECT_FALSE(pair.b.flow->receiver().next(segments));
  EXPECT_EQ(pair.b.flow->status(), Status::reset);
}

TEST(FlowSession, FinWhoseDataNeverComesEndsTheFlowAllTheSame) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(100ms));
  RecordingLink recorded;
  pair.a.send_small(9);
  pair.a.pump();
  pair.a.flow->transmit(pair.clock.now(), recorded);
  pair.a.flow->close(pair.clock.now(), recorded);
  pair.b.flow->receive(pair.clock.now(), recorded.read(1), kFromA);
  pair.clock.set(pair.b.flow->deadline());
  pair.b.flow->on_timer(pair.clock.now());
  EXPECT_EQ(pair.b.flow->status(), Status::reset);
}

TEST(FlowSession, ADeadFlowTakesAndSendsNothing) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(100ms));
  pair.a.flow->close(pair.clock.now(), pair.a.link);
  RecordingLink recorded;
  pair.a.flow->close(pair.clock.now(), recorded);
  pair.a.flow->transmit(pair.clock.now(), recorded);
  EXPECT_TRUE(recorded.frames.empty());
  wire::Segment segment;
  EXPECT_FALSE(pair.a.flow->queue().post(segment, {}, carrier::PayloadMode::copy, 1));
  EXPECT_EQ(pair.a.flow->deadline(), kNever);
}

}  // namespace
}  // namespace cluster::test
