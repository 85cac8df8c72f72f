// The oracle reports each failure that it must detect.
#include "sim/oracle.h"

#include <gtest/gtest.h>

#include <array>

namespace cluster::sim {
namespace {

class OracleTest : public testing::Test {
 protected:
  OracleTest() : oracle(2) {
    oracle.incarnations().begins(0, Time{}, false);
    oracle.incarnations().begins(1, Time{}, false);
    receive.host = 1;
    receive.incarnation = 1;
    receive.tagged = true;
    receive.ignore = ~std::uint64_t{0};
    receive.capacity = buffer.size();
    receive.position = 1;
  }

  /// Sends a message of 100 bytes from host 0 to host 1, which the engine accepts. `buffer` holds its
  /// content.
  MessageNumber send(protocol::CompletionLevel completion_level = protocol::CompletionLevel::inject) {
    Message shape;
    shape.from = 0;
    shape.to = 1;
    shape.tagged = true;
    shape.length = 100;
    shape.completion_level = completion_level;
    const MessageNumber number = oracle.compose(shape).number;
    oracle.accepted(number);
    fill_content(number, Bytes(buffer).first(100));
    return number;
  }
  protocol::Completion sent(MessageNumber number) {
    protocol::Completion completion;
    completion.context = reinterpret_cast<void*>(number);
    completion.tagged = true;
    completion.tag = oracle.message(number).tag;
    return completion;
  }
  protocol::Completion got(MessageNumber number) {
    protocol::Completion completion;
    completion.kind = protocol::Completion::Kind::receive;
    completion.tagged = true;
    completion.tag = oracle.message(number).tag;
    completion.length = 100;
    completion.source = 0;
    return completion;
  }

  Oracle oracle;
  Receive receive;
  std::array<std::byte, 256> buffer{};
};

TEST_F(OracleTest, ACorrectRunPasses) {
  const MessageNumber number = send();
  oracle.received(receive, got(number), buffer);
  oracle.send_ended(sent(number));
  oracle.check_complete();
  EXPECT_EQ(oracle.totals().delivered, 1u);
}

TEST_F(OracleTest, ReceivedTwice) {
  const MessageNumber number = send();
  oracle.received(receive, got(number), buffer);
  EXPECT_THROW(oracle.received(receive, got(number), buffer), SafetyFailure);
}

TEST_F(OracleTest, AWrongByte) {
  const MessageNumber number = send();
  buffer[99] ^= std::byte{1};
  EXPECT_THROW(oracle.received(receive, got(number), buffer), SafetyFailure);
}

TEST_F(OracleTest, AWrongTag) {
  const MessageNumber number = send();
  protocol::Completion completion = got(number);
  completion.tag ^= 1;
  EXPECT_THROW(oracle.received(receive, completion, buffer), SafetyFailure);
}

TEST_F(OracleTest, AWrongSender) {
  const MessageNumber number = send();
  protocol::Completion completion = got(number);
  completion.source = 1;
  EXPECT_THROW(oracle.received(receive, completion, buffer), SafetyFailure);
}

TEST_F(OracleTest, ATruncationThatIsNone) {
  const MessageNumber number = send();
  protocol::Completion completion = got(number);
  completion.status = Status::truncated;
  EXPECT_THROW(oracle.received(receive, completion, buffer), SafetyFailure);
}

TEST_F(OracleTest, AReceiveThatDoesNotTakeIt) {
  const MessageNumber number = send();
  receive.ignore = 0;
  receive.tag = oracle.message(number).tag + 1;
  EXPECT_THROW(oracle.received(receive, got(number), buffer), SafetyFailure);
}

TEST_F(OracleTest, OutOfOrder) {
  const MessageNumber first = send();
  const MessageNumber second = send();
  oracle.received(receive, got(second), buffer);
  receive.position = 2;
  fill_content(first, Bytes(buffer).first(100));
  EXPECT_THROW(oracle.received(receive, got(first), buffer), SafetyFailure);
}

TEST_F(OracleTest, ASendThatEndsTwice) {
  const MessageNumber number = send();
  oracle.send_ended(sent(number));
  EXPECT_THROW(oracle.send_ended(sent(number)), SafetyFailure);
}

TEST_F(OracleTest, ASendThatEndsBeforeItHasArrived) {
  const MessageNumber number = send(protocol::CompletionLevel::transmit);
  EXPECT_THROW(oracle.send_ended(sent(number)), SafetyFailure);
}

/// The simulator found this (seed 17443150295646216029): parts of late copies displaced a part that had
/// come.
TEST_F(OracleTest, ASendWhosePartsComeAmongLateOnes) {
  const MessageNumber number = send(protocol::CompletionLevel::transmit);
  wire::Segment segment{
      .kind = wire::SegmentKind::eager, .flags = wire::segment_flag::kTagged, .length = 100};
  segment.tag = oracle.message(number).tag;
  std::vector<std::byte> segments(wire::kSegmentHeaderMax);
  segments.resize(wire::encode(segment, segments.data()));
  segments.insert(segments.end(), buffer.begin(), buffer.begin() + 100);
  const auto read_part = [&](std::uint32_t sequence, std::uint8_t part) {
    wire::FrameView view;
    view.flags = wire::frame_flag::kSequenced | wire::frame_flag::kOrdered | wire::frame_flag::kPart;
    view.session = 7;
    view.sequence = {sequence};
    view.part = {part, 2, static_cast<std::uint16_t>(segments.size())};
    const std::size_t piece = view.part.piece_max();
    view.segments =
        ConstBytes(segments).subspan(view.part.begin()).first(part == 0 ? piece : segments.size() - piece);
    Packet packet;
    packet.to = 1;
    packet.incarnation = 1;
    oracle.frame_read(1, packet, view, Time{});
  };
  read_part(100, 0);
  for (std::uint32_t late = 0; late < 64; ++late) read_part(late, 0);
  read_part(100, 1);
  oracle.send_ended(sent(number));
}

TEST_F(OracleTest, AnErrorWithoutCause) {
  const MessageNumber number = send();
  protocol::Completion completion = sent(number);
  completion.status = Status::reset;
  EXPECT_THROW(oracle.send_ended(completion), SafetyFailure);
}

TEST_F(OracleTest, AnErrorWithCause) {
  const MessageNumber number = send();
  oracle.incarnation_ends(1);
  protocol::Completion completion = sent(number);
  completion.status = Status::reset;
  oracle.send_ended(completion);
  oracle.check_complete();
  EXPECT_EQ(oracle.totals().failures, 1u);
}

TEST_F(OracleTest, AMessageThatNeverArrives) {
  const MessageNumber number = send();
  oracle.send_ended(sent(number));
  EXPECT_EQ(oracle.undelivered(1, true), 1u);
  EXPECT_THROW(oracle.check_complete(), SafetyFailure);
}

TEST_F(OracleTest, AMessageThatAPeekHadFoundMustEndInAReceive) {
  const MessageNumber number = send();
  oracle.peeked(receive, got(number), Oracle::PeekEffect::stays);
  oracle.incarnation_ends(0);
  oracle.incarnations().begins(0, Time{}, false);
  EXPECT_THROW(oracle.check_complete(), SafetyFailure);
  protocol::Completion failure = got(number);
  failure.status = Status::reset;
  failure.peer = address_of(0);
  oracle.receive_failed(receive, failure);
  EXPECT_NO_THROW(oracle.check_complete());
}

TEST_F(OracleTest, AClaimedMessageThatIsGone) {
  const MessageNumber number = send();
  oracle.incarnation_ends(0);
  EXPECT_THROW(oracle.claimed_message_missing(number), SafetyFailure);
}

TEST_F(OracleTest, ASendThatNeverEnds) {
  const MessageNumber number = send();
  oracle.received(receive, got(number), buffer);
  EXPECT_THROW(oracle.check_complete(), LivenessFailure);
}

TEST_F(OracleTest, AMessageThatWasNeverSent) {
  send();
  protocol::Completion completion = got(1);
  fill_content(77, Bytes(buffer).first(100));
  EXPECT_THROW(oracle.received(receive, completion, buffer), SafetyFailure);
}

}  // namespace
}  // namespace cluster::sim
