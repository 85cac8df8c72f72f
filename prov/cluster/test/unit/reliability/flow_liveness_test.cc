// How a flow treats a peer that does not answer, or for which path errors arrive.
#include <gtest/gtest.h>

#include "support/flow_pair.h"
#include "support/forged_frame.h"
#include "support/recording_link.h"

namespace cluster::test {
namespace {

/// A peer that was never met may be flooded: some of what it is asked gets lost.
TEST(FlowLiveness, APeerThatWasNeverMetIsAskedAsOftenAsItIsCalled) {
  FlowPair pair(1);
  pair.network.conditions.blackout = true;
  pair.a.send_small(8);
  pair.pass(200ms);
  EXPECT_EQ(pair.a.keep_alives, 0u);
  pair.pass(4200ms);
  EXPECT_EQ(pair.a.keep_alives, 17u);
}

TEST(FlowLiveness, KeepAlivesAfterAQuarterOfASecondThenEverySecondThenTheEnd) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(50ms));
  pair.network.conditions.blackout = true;
  pair.a.send_small(8);
  pair.pass(200ms);
  EXPECT_EQ(pair.a.keep_alives, 0u);
  pair.pass(200ms);
  EXPECT_EQ(pair.a.keep_alives, 1u);
  pair.pass(4s);
  EXPECT_EQ(pair.a.keep_alives, 5u);
  EXPECT_EQ(pair.a.flow->status(), Status::ok);
  pair.pass(400ms);
  EXPECT_EQ(pair.a.flow->status(), Status::ok);
  pair.pass(400ms);
  EXPECT_EQ(pair.a.flow->status(), Status::unreachable);
  EXPECT_EQ(pair.b.keep_alives, 0u) << "nothing is owed to b, so it asks nothing";
}

TEST(FlowLiveness, TheKeepAliveResponderKeepsABusyPeerAlive) {
  FlowPair pair(1);
  pair.network.conditions.blackout = true;
  pair.a.send_small(8);
  for (int second = 0; second < 60; ++second) {
    pair.pass(1s);
    wire::FrameView asked, answer;
    ASSERT_EQ(wire::admit(pair.a.last_keep_alive.bytes(), asked), wire::Refusal::none);
    ASSERT_EQ(wire::admit(wire::ControlFrame::alive(asked).bytes(), answer), wire::Refusal::none);
    EXPECT_TRUE(pair.a.flow->on_alive(pair.clock.now(), answer, {name_of(2), {}, false}));
  }
  EXPECT_EQ(pair.a.flow->status(), Status::ok);
  pair.network.conditions.blackout = false;
  ASSERT_TRUE(pair.run(2s));
  pair.b.expect_all_of(pair.a);
}

TEST(FlowLiveness, APeerThatIsNotUpYetIsTriedAgain) {
  FlowPair pair(1);
  pair.network.conditions.blackout = true;
  pair.a.send_small(8);
  pair.a.turn();
  for (int i = 0; i < 9; ++i) {
    pair.pass(100ms);
    pair.a.flow->on_path_error(pair.clock.now(), pair.a.path_error(Status::refused));
  }
  EXPECT_EQ(pair.a.flow->status(), Status::ok);
  pair.network.conditions.blackout = false;
  ASSERT_TRUE(pair.run(50ms)) << "a path error brings the next retransmission forward";
  pair.b.expect_all_of(pair.a);
}

TEST(FlowLiveness, AnOpeningIsNoSignOfLife) {
  FlowPair pair(1);
  pair.network.drop = [](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.from == name_of(2);
  };
  pair.a.send_small(8);
  pair.b.send_small(8);
  pair.pass(2500ms);
  EXPECT_EQ(pair.b.flow->stats().heard_at, Time{});
  pair.pass(3s);
  EXPECT_EQ(pair.b.flow->status(), Status::unreachable) << "though the peer has called once a second";
}

/// A host that knows, or has guessed, the number of a session cannot keep a dead peer alive.
TEST(FlowLiveness, AFrameWithoutAPlaceInTheSessionIsNoSignOfLife) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(1s));
  pair.network.conditions.blackout = true;
  pair.a.send_small(8);
  ForgedFrame outside;
  outside.header.session = pair.a.flow->handshake().session();
  outside.carry({.kind = wire::SegmentKind::eager});
  outside.header.sequence = pair.a.flow->receiver().window().expected().value + 1'000'000;
  ForgedFrame bare;
  bare.header.session = outside.header.session;
  for (int i = 0; i < 60; ++i) {
    pair.pass(100ms);
    for (const ForgedFrame* const frame : {&outside, &bare}) {
      const std::vector<std::byte> bytes = frame->bytes();
      wire::FrameView view;
      ASSERT_EQ(wire::admit(bytes, view), wire::Refusal::none);
      pair.a.flow->receive(pair.clock.now(), view, {name_of(2), {}, false}, pair.clock.now(), 1);
    }
  }
  EXPECT_EQ(pair.a.flow->status(), Status::unreachable);
}

Status status_after_path_errors(FlowPair& pair, Status error, Duration time) {
  const Time end = pair.clock.now() + time;
  while (pair.clock.now() < end) {
    pair.pass(50ms);
    pair.a.flow->on_path_error(pair.clock.now(), pair.a.path_error(error));
  }
  return pair.a.flow->status();
}

TEST(FlowLiveness, StatusAfterPathErrors) {
  FlowPair never(1);
  never.network.conditions.blackout = true;
  never.a.send_small(8);
  EXPECT_EQ(status_after_path_errors(never, Status::refused, 1200ms), Status::refused);

  FlowPair once(1);
  once.a.send_small(8);
  ASSERT_TRUE(once.run(100ms));
  once.network.conditions.blackout = true;
  once.a.send_small(8);
  EXPECT_EQ(status_after_path_errors(once, Status::refused, 1200ms), Status::ended);

  FlowPair far(1);
  far.network.conditions.blackout = true;
  far.a.send_small(8);
  EXPECT_EQ(status_after_path_errors(far, Status::unreachable, 2500ms), Status::ok);
  EXPECT_EQ(status_after_path_errors(far, Status::unreachable, 1s), Status::unreachable);
}

// They are read late, by a process that was stopped, together with the opening of the next incarnation.
TEST(FlowLiveness, OldPathErrorsDoNotCountAgainstANewIncarnation) {
  FlowPair pair(1);
  pair.network.conditions.blackout = true;
  pair.a.send_small(8);
  ASSERT_EQ(status_after_path_errors(pair, Status::refused, 900ms), Status::ok);
  pair.pass(50ms);
  RecordingLink call;
  pair.b.send_small(8);
  pair.b.pump();
  pair.b.flow->transmit(pair.clock.now(), call);
  RecordingLink answers;
  pair.a.flow->answer_opening(call.read(0), {name_of(2), {}, false}, answers);
  ASSERT_EQ(answers.frames.size(), 1u);
  pair.a.flow->on_path_error(pair.clock.now(), pair.a.path_error(Status::refused));
  EXPECT_EQ(pair.a.flow->status(), Status::ok);
  pair.network.conditions.blackout = false;
  ASSERT_TRUE(pair.run(2s));
  pair.a.expect_all_of(pair.b);
  pair.b.expect_all_of(pair.a);
}

/// What it quotes, of a frame to a peer that has answered (or has not), and whether that is believed.
struct Quoted {
  wire::FrameKind kind;
  std::uint32_t session;
  std::uint32_t sequence;
  std::size_t size = sizeof(wire::FrameHeader);
};

bool ends_the_session(bool met, auto&& quoted_by) {
  FlowPair pair(1);
  pair.a.send_small(8);
  if (met) {
    EXPECT_TRUE(pair.run(100ms));
  }
  pair.network.conditions.blackout = true;
  if (met) pair.a.send_small(8);
  pair.pass(1ms);
  const Quoted quoted = quoted_by(*pair.a.flow);
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.kind = static_cast<std::uint8_t>(quoted.kind);
  header.session = quoted.session;
  header.sequence = quoted.sequence;
  link::PathError error{name_of(2), Status::refused};
  error.set_quote(as_bytes(&header, quoted.size));
  for (int i = 0; i < 30; ++i) {
    pair.a.flow->on_path_error(pair.clock.now(), error);
    pair.pass(50ms);
  }
  EXPECT_EQ(pair.a.counters.path_errors_unproven != 0, pair.a.flow->status() == Status::ok);
  EXPECT_GT(pair.a.keep_alives, 4u) << "believed or not, the peer is asked";
  return pair.a.flow->status() != Status::ok;
}

/// Any host can make one, but has not seen the frames.
TEST(FlowLiveness, APathErrorIsBelievedIfItQuotesWhatWasSentToThePeerAlone) {
  using reliability::Flow;
  using enum wire::FrameKind;
  const auto theirs = [](Flow& flow) { return flow.handshake().peer_session(); };
  const auto ours = [](Flow& flow) { return flow.handshake().session(); };
  const auto next = [](Flow& flow) { return flow.queue().window().next().value; };
  EXPECT_TRUE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, theirs(f), next(f) - 1}; }));
  EXPECT_TRUE(ends_the_session(true, [&](Flow& f) { return Quoted{keep_alive, theirs(f), ours(f)}; }));
  EXPECT_TRUE(ends_the_session(true, [&](Flow& f) {
    return Quoted{path_challenge, theirs(f), ours(f), 20};
  }));
  EXPECT_TRUE(ends_the_session(false, [&](Flow& f) { return Quoted{flow, 0, next(f) - 1}; }));
  EXPECT_TRUE(ends_the_session(false, [&](Flow& f) { return Quoted{keep_alive, 0, ours(f)}; }));

  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, theirs(f) + 256, next(f) - 1}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, theirs(f), next(f) + 1}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, theirs(f), next(f) - 5000}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, 0, next(f) - 1}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{keep_alive, theirs(f), ours(f) + 1}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{alive, theirs(f), theirs(f)}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, theirs(f), next(f) - 1, 19}; }));
  EXPECT_FALSE(ends_the_session(true, [&](Flow& f) { return Quoted{flow, theirs(f), next(f) - 1, 0}; }));
  EXPECT_FALSE(ends_the_session(false, [&](Flow& f) { return Quoted{flow, 0, ours(f) - 1}; }));
  EXPECT_FALSE(ends_the_session(false, [&](Flow& f) { return Quoted{keep_alive, 0, ours(f) + 1}; }));
}

TEST(FlowLiveness, APathErrorForAPeerThatOwesNothingIsIgnored) {
  FlowPair pair(1);
  pair.a.send_small(8);
  ASSERT_TRUE(pair.run(100ms));
  EXPECT_EQ(status_after_path_errors(pair, Status::refused, 3s), Status::ok);
}

}  // namespace
}  // namespace cluster::test
