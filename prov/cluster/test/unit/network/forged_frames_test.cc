// The limits of an off-path attacker. It knows the addresses, the protocol and even a session's number, and
// sends under any name, but it sees no frames sent to others.
#include <gtest/gtest.h>

#include <vector>

#include "network/answer_limiter.h"
#include "support/forged_frame.h"
#include "support/node.h"
#include "wire/control.h"

namespace cluster::engine {
namespace {

using network::AnswerLimiter;

using test::FakeNetwork;
using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kLate;
using test::kUnknownSource;
using test::Node;

class ForgedFramesTest : public test::EngineTest {
 protected:
  /// Both sides have sent; `genuine` is the last frame of b's that was addressed to a's session.
  void converse() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (wire::admit(packet.bytes, view) != wire::Refusal::none) return false;
      if (to == kA && view.session != 0 && view.sequenced() && !view.has_opening) genuine = packet.bytes;
      return false;
    };
    for (int i = 0; i < 3; ++i) {
      a.send();
      b.send();
      pass(a, b);
    }
    network.drop = nullptr;
    ASSERT_FALSE(genuine.empty());
  }

  std::vector<std::byte> genuine;
  Node a{network, kA, kB, 1000};
  Node b{network, kB, kA, 1000};
};

TEST_F(ForgedFramesTest, AFrameFromAnotherAddressDoesNotBelongToTheSession) {
  converse();
  ForgedFrame frame(genuine);
  frame.header.sequence = frame.header.sequence + 1;
  frame.header.flags = wire::frame_flag::kSequenced | wire::frame_flag::kOrdered;
  frame.segment = {.kind = wire::SegmentKind::eager};
  const std::uint64_t before = a.counters().unexpected;
  const std::uint64_t refused = a.counters().refused_stale;
  inject(kUnknownSource, kA, frame.bytes());
  pass(a);
  EXPECT_EQ(a.counters().unexpected, before);
  EXPECT_EQ(a.counters().refused_stale, refused + 1);
  inject(kB, kA, frame.bytes());
  pass(a);
  EXPECT_EQ(a.counters().unexpected, before + 1) << "that was all that was wrong with it";
  network.conditions.blackout = true;  // the forged sequence has put the two out of step
}

/// A forger that has guessed the session soon guesses an old sequence as well.
TEST_F(ForgedFramesTest, AnOldPlaceMovesNoTransmissionNumber) {
  converse();
  for (const std::uint32_t back : {5000u, 60'000u}) {
    ForgedFrame frame(genuine);
    frame.header.sequence = frame.header.sequence - back;
    frame.header.transmission = frame.header.transmission + (1u << 30);
    frame.header.flags = wire::frame_flag::kSequenced | wire::frame_flag::kOrdered;
    frame.segment = {.kind = wire::SegmentKind::eager};
    inject(kB, kA, frame.bytes());
  }
  pass(a);
  const std::uint64_t refused = b.counters().refused_window;
  const std::uint64_t before = a.counters().unexpected;
  for (int i = 0; i < 3; ++i) {
    a.send();
    b.send();
    pass(a, b);
  }
  EXPECT_EQ(b.counters().refused_window, refused) << "what a acknowledges was sent";
  EXPECT_EQ(a.counters().unexpected, before + 3);
  EXPECT_TRUE(b.engine.quiescent());
}

/// No firewall of the host has seen such a frame.
TEST_F(ForgedFramesTest, NoSessionBeginsOverAQueuePair) {
  const std::byte gid[SocketAddress::kGidBytes]{std::byte{0xfd}};
  const SocketAddress stranger = SocketAddress::queue_pair(gid, 17);
  inject(stranger, kA, ForgedFrame::call(kB, 0xF0F0F0, kLate).bytes());
  inject(stranger, kA, wire::ControlFrame::keep_alive(1, 2).bytes());
  pass(a);
  EXPECT_EQ(a.counters().refused_malformed, 2u);
  EXPECT_EQ(a.counters().unexpected, 0u);
  EXPECT_EQ(a.counters().frames_sent, 0u);
}

TEST_F(ForgedFramesTest, AFinWhoseEndCannotBeClosesNothing) {
  converse();
  ForgedFrame fin(genuine);
  fin.header.kind = static_cast<std::uint8_t>(wire::FrameKind::fin);
  fin.header.flags = 0;
  const std::uint32_t last = fin.header.sequence;
  const std::uint64_t refused = a.counters().refused_window;
  for (const std::uint32_t off : {1000u, 0x80000000u, 0xFFFFFFF0u}) {
    fin.header.sequence = last + off;
    inject(kB, kA, fin.bytes());
  }
  pass(a, b);
  EXPECT_EQ(a.counters().refused_window, refused + 3);
  const std::uint64_t received = b.counters().unexpected;
  a.send();
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, received + 1);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
}

/// The forger makes this side name a session to b for an incarnation that does not exist; a late frame of an
/// earlier b addresses that session.
TEST_F(ForgedFramesTest, APendingSessionIsOnlyForALaterIncarnation) {
  converse();
  const wire::Opening named = answer_to(ForgedFrame::call(kB, 0xF0F0F0, kLate), a);
  ForgedFrame late = ForgedFrame::call(kB, 0xF0F0F1, 1);
  late.take_up(named);
  inject(kB, kA, late.bytes());
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  const std::uint64_t received = b.counters().unexpected;
  a.send();
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, received + 1);
}

/// The session's number has 32 bits, so a forger that makes this side name it to b would guess it within
/// hours.
TEST_F(ForgedFramesTest, TheNumberOfAPendingSessionAloneEndsNothing) {
  converse();
  const ForgedFrame call = ForgedFrame::call(kB, 0xF0F0F0, kLate);
  const wire::Opening named = answer_to(call, a);
  for (const std::uint64_t guess :
       {std::uint64_t{0}, named.token ^ 1, named.token + (std::uint64_t{1} << 32)}) {
    ForgedFrame guessed = call;
    guessed.take_up(named);
    guessed.opening->echo = guess;
    inject(kB, kA, guessed.bytes());
  }
  const std::uint64_t before = a.counters().unexpected;
  pass(a);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  EXPECT_EQ(a.counters().unexpected, before);
  ForgedFrame right = call;
  right.take_up(named);
  inject(kB, kA, right.bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_closed, 1u) << "that was all that was wrong with them";
  network.conditions.blackout = true;
}

/// Frames of sessions that are not here.
class NoSuchSessionTest : public test::EngineTest {
 protected:
  void send_to_guessed_sessions(const SocketAddress& from, std::uint32_t frames) {
    for (std::uint32_t i = 0; i < frames; ++i) {
      ForgedFrame frame;
      frame.header.session = 0xABCD0000u + i;
      frame.carry({.kind = wire::SegmentKind::eager});
      inject(from, kA, frame.bytes());
    }
  }
};

TEST_F(NoSuchSessionTest, FramesOfOthersDoNotKeepARestartFromThePeers) {
  Node b(network, kB, kA, 1000);
  {
    Node first(network, kA, kB, 1000);
    b.send();
    pass(first, b);
    network.conditions.blackout = true;
  }
  network.conditions.blackout = false;
  Node a(network, kA, kB, 2000);
  send_to_guessed_sessions(kUnknownSource, 2000);
  pass(a);
  send_to_guessed_sessions(kUnknownSource, 10);
  b.send();
  pass(a, b);
  EXPECT_EQ(b.counters().sessions_closed, 1u);
}

TEST_F(NoSuchSessionTest, DrawAsManyResetsAsTheBucketHasTokens) {
  Node a(network, kA, kB, 1000);
  std::int64_t resets = 0;
  network.drop = [&](const FakeNetwork::Packet&, const SocketAddress& to) {
    if (to == kB) ++resets;
    return to == kB;
  };
  const Time begin = clock.now();
  for (int i = 0; i < 100; ++i) {
    send_to_guessed_sessions(kB, 200);
    pass(a);
  }
  const std::int64_t milliseconds = (clock.now() - begin) / 1ms;
  EXPECT_GT(resets, 100);
  EXPECT_LE(resets, AnswerLimiter::kBurst + AnswerLimiter::kPerSecond * (milliseconds + 1) / 1000);
}

/// A forger that calls under the name of b, which has not called.
class ForgedCallTest : public test::EngineTest {
 protected:
  static constexpr std::uint32_t kForged = 0xF0F0F0;

  static void receive_from_b(Node& node) {
    const Bytes slice = as_bytes(&node.got, sizeof node.got);
    EXPECT_EQ(node.engine.receive({.slices = {&slice, 1}, .from = 0, .ignore = ~std::uint64_t{0}}),
              Status::ok);
  }
  void count_answers() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (to == kUnknownSource) ++answers, answered += packet.bytes.size();
      return false;
    };
  }

  std::size_t answers = 0;  ///< to the unknown source
  std::size_t answered = 0;
  Node a{network, kA, kB, 1000};
};

TEST_F(ForgedCallTest, ThatGuessesTheNumberOfItsSessionIsNotThePeer) {
  const ForgedFrame call = ForgedFrame::call(kB, kForged, kLate);
  receive_from_b(a);
  const wire::Opening named = answer_to(call, a);
  ForgedFrame guessed = call;
  guessed.take_up(named);
  guessed.opening->echo = named.token + 1;
  inject(kB, kA, guessed.bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened + a.counters().bytes_received + a.counters().unexpected, 0u);
  Node b(network, kB, kA, 1000);
  b.send();
  pass(a, b);
  EXPECT_EQ(a.got, 1u) << "the receive is still there for b";
}

TEST_F(ForgedCallTest, DeliversNothing) {
  receive_from_b(a);
  for (std::uint32_t i = 0; i < 8; ++i) {
    ForgedFrame call = ForgedFrame::call(kB, kForged, kLate);
    call.header.sequence = kForged + i;
    inject(kB, kA, call.bytes());
  }
  pass(a);
  EXPECT_EQ(a.counters().bytes_received + a.counters().unexpected + a.counters().sessions_opened, 0u);
}

/// One such datagram could abort a job: the flow became b's, and b then refused it.
TEST_F(ForgedCallTest, ThatListsThePeerAsARailIsNotThePeers) {
  Node b(network, kB, kA, 1000);
  receive_from_b(a);
  count_answers();
  ForgedFrame call = ForgedFrame::call(kUnknownSource, kForged, kLate);
  call.rails = {kB};
  for (int i = 0; i < 8; ++i) inject(kUnknownSource, kA, call.bytes());
  pass(a, b);
  EXPECT_EQ(a.counters().bytes_received + a.counters().unexpected, 0u);
  EXPECT_EQ(answers, 0u) << "only b is asked, at its address";
  a.send();  // on what was opened for the caller
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_closed + b.counters().sessions_closed, 0u);
  EXPECT_EQ(b.counters().unexpected, 1u);
  EXPECT_EQ(a.got, 1u) << "the receive is still there for b";
  EXPECT_TRUE(a.engine.quiescent() && b.engine.quiescent());
}

/// No process is at b's address yet, and the kernel there says so after each answer.
TEST_F(ForgedCallTest, UnderTheNameOfAPeerThatIsNotThereEndsNoReceive) {
  receive_from_b(a);
  network.absent = kB;
  for (int i = 0; i < 40; ++i) {
    inject(kB, kA, ForgedFrame::call(kB, kForged, kLate).bytes());
    clock.advance(50ms);
    pass(a);
  }
  network.absent.reset();
  Node b(network, kB, kA, 1000);
  b.send();
  pass(a, b);
  EXPECT_EQ(a.got, 1u);
}

TEST_F(ForgedCallTest, CannotHoldThePlaceOfTheNextIncarnation) {
  {
    Node b(network, kB, kA, 1000);
    a.send();
    pass(a, b);
    network.conditions.blackout = true;  // it ends silently
  }
  network.conditions.blackout = false;
  Node restarted(network, kB, kA, 2000);
  for (std::uint32_t i = 0; i < 100; ++i)
    inject(kB, kA, ForgedFrame::call(kB, kForged + i, kLate + i).bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  restarted.send();
  pass(a, restarted);
  EXPECT_EQ(a.counters().sessions_opened, 2u);
  EXPECT_EQ(a.counters().unexpected, 1u);
  EXPECT_EQ(restarted.counters().timeouts, 0u) << "it took no longer than without the forger";
}

TEST_F(ForgedCallTest, DrawsOneAnswerOfLessThanThreeTimesItsLength) {
  count_answers();
  const std::vector<std::byte> call = ForgedFrame::call(kUnknownSource, kForged, kLate).bytes();
  inject(kUnknownSource, kA, call);
  for (int i = 0; i < 2; ++i) {
    clock.advance(60s);
    pass(a);
  }
  EXPECT_EQ(answers, 1u) << "and nothing more, however long it takes";
  EXPECT_LT(answered, 3 * call.size());
}

// It lists its own address, so its source is valid.
TEST_F(ForgedCallTest, AgainAndAgainDoesNotKeepThePeersOut) {
  Node b(network, kB, kA, 1000);
  ForgedFrame call = ForgedFrame::call(kB, 0xABCDEF, kLate);
  call.rails = {kUnknownSource};
  inject(kUnknownSource, kA, call.bytes());
  clock.advance(100us);
  a.engine.poll();
  ASSERT_EQ(a.counters().frames_sent, 1u);
  b.send();
  for (int i = 0; i < 500 && a.counters().unexpected == 0; ++i) {
    pass(a, b);
    inject(kUnknownSource, kA, call.bytes());
  }
  EXPECT_EQ(a.counters().unexpected, 1u);
}

TEST_F(ForgedCallTest, ThatDrawsNoAnswerTakesNoneFromThePeer) {
  {
    Node first(network, kB, kA, 1000);
    first.send();
    pass(a, first);
    network.conditions.blackout = true;
  }
  network.conditions.blackout = false;
  pass(a);
  pass(a);
  Node b(network, kB, kA, 2000);
  inject(kB, kA, ForgedFrame::call(kB, 0xABCDEF, 1).bytes());
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().unexpected, 2u);
  EXPECT_EQ(b.counters().timeouts, 0u);
}

TEST_F(ForgedCallTest, ThatCameToNothingIsForgotten) {
  inject(kUnknownSource, kA, ForgedFrame::call(kUnknownSource, kForged, kLate).bytes());
  inject(kB, kA, ForgedFrame::call(kB, kForged, kLate).bytes());
  pass(a);
  clock.advance(test::node_settings().peer_timeout + 1s);
  pass(a);
  EXPECT_EQ(a.engine.next_deadline(), kNever);
  EXPECT_TRUE(a.log().lines.empty());
  Node b(network, kB, kA, 1000);
  a.send();
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, 1u);
}

}  // namespace
}  // namespace cluster::engine
