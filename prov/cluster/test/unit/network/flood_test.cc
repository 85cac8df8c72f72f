// Floods from unknown sources: how much an endpoint may keep for them, and that other peers still connect.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "network/answer_limiter.h"
#include "network/flood_watch.h"
#include "support/forged_frame.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using network::AnswerLimiter;
using network::FloodWatch;

using test::FakeNetwork;
using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kLate;
using test::kUnknownSource;
using test::Node;

/// Half-open sessions that are kept.
constexpr std::size_t kHalfOpenMax = 256;

EngineSettings roomy() {
  EngineSettings settings = test::node_settings();
  settings.flows_max = 1024;
  return settings;
}

class FloodTest : public test::EngineTest {
 protected:
  void flood(std::uint16_t calls) {
    for (std::uint16_t i = 0; i < calls; ++i) {
      const SocketAddress name = kUnknownSource.with_port(static_cast<std::uint16_t>(2000 + i));
      inject(name, kA, ForgedFrame::call(name, 0xF0000000u + i, kLate).bytes());
    }
  }
  /// The next frame of a source that called during a flood: it addresses the session that it was told.
  ForgedFrame call_again(Node& a) {
    flood(300);
    ForgedFrame call = ForgedFrame::call(kUnknownSource, 0xABCDEF, kLate);
    call.take_up(answer_to(call, a));
    return call;
  }
};

TEST_F(FloodTest, HalfOpenSessionsAreKeptUpToALimit) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  flood(600);
  pass(a);
  EXPECT_EQ(a.counters().frames_sent, 600u) << "all are answered";
  EXPECT_EQ(a.engine.stats()->peers.size(), kHalfOpenMax);
}

TEST_F(FloodTest, ASourceThatAnswersGetsASessionThatWasNotKept) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  Node b(network, kB, kA, 1000);
  Node unknown(network, kUnknownSource, kA, 1000);
  flood(600);
  pass(a);
  unknown.send();
  unknown.send();
  b.send();
  pass(a, b, unknown);
  EXPECT_EQ(a.counters().unexpected, 3u);
  EXPECT_EQ(a.counters().sessions_opened, 2u);
  EXPECT_EQ(unknown.counters().timeouts + b.counters().timeouts, 0u)
      << "it took no longer than without the flood";
  EXPECT_TRUE(unknown.engine.quiescent());
}

/// A source is told a session that this side does not store. Then the application inserts the source, and calls
/// it before the first data of the source arrives.
TEST_F(FloodTest, ASessionOnlyNamedToAStrangerIsNotLostWhenItBecomesAMember) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  Node stranger(network, kUnknownSource, kA, 1000);
  flood(300);
  pass(a);
  std::optional<std::uint32_t> named;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    if (to != kA || wire::admit(packet.bytes, view) != wire::Refusal::none || view.session == 0) return false;
    if (!named) named = view.session;
    return view.session == *named;
  };
  stranger.send();
  pass(a, stranger);
  ASSERT_TRUE(named);
  a.book.insert(kUnknownSource);
  a.send(1);
  pass(a, stranger);
  network.drop = nullptr;
  clock.advance(1s);
  pass(a, stranger);
  EXPECT_EQ(a.counters().unexpected, 1u);
  EXPECT_EQ(stranger.counters().unexpected, 1u);
  EXPECT_EQ(stranger.counters().sessions_closed + a.counters().sessions_closed, 0u);
  EXPECT_TRUE(a.engine.quiescent() && stranger.engine.quiescent());
}

/// Fewer calls than a flood, for long: members' names and others share one bucket.
TEST_F(FloodTest, CallsDrawABurstOfAnswersAndThenSoManyASecond) {
  constexpr int kCalls = 30;  // in an interval
  constexpr int kIntervals = 1000;
  Node a(network, kA, kB, 1000, nullptr, roomy());
  network.drop = [](const FakeNetwork::Packet&, const SocketAddress& to) { return to != kA; };
  const Time begin = clock.now();
  for (int i = 0; i < kIntervals; ++i) {
    flood(kCalls / 2);
    for (std::uint32_t each = 0; each < kCalls / 2; ++each)
      inject(kB, kA, ForgedFrame::call(kB, 0xE0000000u + each, kLate).bytes());
    clock.advance(FloodWatch::kInterval - 1ms);
    pass(a);
  }
  ASSERT_FALSE(network.thinning.on);
  const std::int64_t seconds = (clock.now() - begin) / 1s;
  const auto answers = static_cast<std::int64_t>(a.counters().frames_sent);
  EXPECT_GE(answers, AnswerLimiter::kBurst + AnswerLimiter::kPerSecond * seconds * 9 / 10);
  EXPECT_LE(answers, AnswerLimiter::kBurst + AnswerLimiter::kPerSecond * (seconds + 1));
}

TEST_F(FloodTest, InAFloodThereIsNoBurst) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  const std::vector<std::byte> nonsense(40);
  for (std::int64_t sent = 0; sent <= FloodWatch::kBurst + 1000; sent += 100) {
    for (int i = 0; i < 100; ++i) inject(kUnknownSource, kA, nonsense);
    pass(a);
  }
  ASSERT_TRUE(network.thinning.on);
  const std::uint64_t before = a.counters().frames_sent;
  flood(100);
  pass(a);
  EXPECT_GT(a.counters().frames_sent, before);
  EXPECT_LT(a.counters().frames_sent, before + 20);
}

/// The session of such a peer lacks the mark of members.
TEST_F(FloodTest, InAFloodFramesOfAPeerThatBecameAMemberLaterPass) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  Node late(network, kUnknownSource, kA, 1000);
  std::uint32_t session = 0;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    if (to == kA && wire::admit(packet.bytes, view) == wire::Refusal::none && view.session != 0)
      session = view.session;
    return false;
  };
  late.send();
  pass(a, late);
  late.send();
  pass(a, late);
  ASSERT_NE(session, 0u);
  network.drop = nullptr;
  const std::vector<std::byte> nonsense(40);
  const auto flood_for_a_while = [&] {
    for (std::int64_t sent = 0; sent <= FloodWatch::kBurst + 1000; sent += 100) {
      for (int i = 0; i < 100; ++i) inject(kUnknownSource.with_port(3), kA, nonsense);
      pass(a);
    }
    clock.advance(FloodWatch::kInterval);
    pass(a);
    ASSERT_TRUE(network.thinning.on);
  };
  flood_for_a_while();
  EXPECT_FALSE(network.thinning.passes(session)) << "it is not a member yet";
  a.book.insert(kUnknownSource);
  flood_for_a_while();
  EXPECT_TRUE(network.thinning.passes(session));
  EXPECT_FALSE(network.thinning.passes(session ^ 0x100));
}

/// In a flood, frames with the endpoint's mark always pass. If such a frame drew an answer, a host could
/// recognise the mark.
TEST_F(FloodTest, InAFloodOnlyFramesOfMembersDrawResets) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  int resets = 0;
  const auto resets_to = [&](const SocketAddress& source) {
    resets = 0;
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool reset =
          wire::admit(packet.bytes, view) == wire::Refusal::none && view.kind == wire::FrameKind::reset;
      resets += reset && to == source ? 1 : 0;
      return reset;
    };
    for (std::uint32_t mark = 0; mark < 256; ++mark) {
      ForgedFrame frame;
      frame.header.session = 0xABCDEF00u | mark;
      frame.carry({.kind = wire::SegmentKind::eager});
      inject(source, kA, frame.bytes());
    }
    pass(a);
    network.drop = nullptr;
    return resets;
  };
  EXPECT_GT(resets_to(kUnknownSource), 200);
  const std::vector<std::byte> nonsense(40);
  for (std::int64_t sent = 0; sent <= FloodWatch::kBurst + 1000; sent += 100) {
    for (int i = 0; i < 100; ++i) inject(kUnknownSource, kA, nonsense);
    pass(a);
  }
  ASSERT_TRUE(network.thinning.on);
  EXPECT_EQ(resets_to(kUnknownSource), 0);
  EXPECT_GE(resets_to(kB), 5);
}

/// One host writes in the name of a member that communicates meanwhile, or did so a moment ago.
TEST_F(FloodTest, WhatIsAskedInTheNameOfAPeerThatSpeaksDrawsNothing) {
  constexpr int kEach = 20;  // in 5 ms
  constexpr int kIntervals = 40;
  Node a(network, kA, kB, 1000, nullptr, roomy());
  Node b(network, kB, kA, 1000);
  std::uint32_t number = 0x40000000;
  int answers = 0;
  int resets = 0;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    if (to != kB || wire::admit(packet.bytes, view) != wire::Refusal::none ||
        view.kind == wire::FrameKind::fin)
      return false;
    const bool answer = view.has_opening && (view.session & 0xFFu) == 0;  // real sessions have a mark
    answers += answer ? 1 : 0;
    resets += view.kind == wire::FrameKind::reset ? 1 : 0;
    return answer || view.kind == wire::FrameKind::reset;
  };
  const auto forge = [&] {
    answers = resets = 0;
    for (int i = 0; i < kIntervals; ++i) {
      for (int each = 0; each < kEach; ++each) {
        number += 0x100;  // none has a mark
        ForgedFrame in_session;
        in_session.header.session = number;
        in_session.carry({.kind = wire::SegmentKind::eager});
        inject(kB, kA, ForgedFrame::call(kB, number, kLate + number).bytes());
        inject(kB, kA, in_session.bytes());
      }
      clock.advance(FloodWatch::kInterval - 1ms);
      pass(a);
    }
  };
  b.send();
  pass(a, b);
  forge();
  ASSERT_TRUE(network.thinning.on);
  b.send();
  pass(a, b);
  forge();
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(resets, 0);
  clock.advance(1s);
  forge();
  EXPECT_GT(answers, 50) << "it has been silent: perhaps it begins anew";
  EXPECT_GT(resets, 50);
}

/// Found by the simulator (flooder, seed 1089614181105592972): with hundreds of unknown sources the engine
/// noticed the death of a peer that owed a message too late.
TEST_F(FloodTest, UnknownSourcesDoNotPutOffWhatAMemberIsAsked) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  Node b(network, kB, kA, 1000);
  a.send();
  pass(a, b);
  const Bytes slice = as_bytes(&a.got, sizeof a.got);
  ASSERT_EQ(a.engine.receive({.slices = {&slice, 1}, .from = 0}), Status::ok);
  flood(300);
  pass(a);
  int asked = 0;
  network.drop = [&](const FakeNetwork::Packet&, const SocketAddress& to) {
    asked += to == kB ? 1 : 0;
    return to == kB;
  };
  int milliseconds = 0;
  while (asked == 0 && milliseconds < 1000) {
    clock.advance(1ms);
    a.engine.poll();
    ++milliseconds;
  }
  network.drop = nullptr;  // the frames at the nodes' close do not matter
  EXPECT_LE(milliseconds, 410) << "credit is sent again after 400 ms, however many others have called";
}

TEST_F(FloodTest, ASessionNamedToOneIsNoUseToAnother) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  const ForgedFrame call = call_again(a);
  ForgedFrame other = call;
  other.opening->name = kUnknownSource.with_port(9);
  inject(kUnknownSource.with_port(9), kA, other.bytes());
  ForgedFrame guessed = call;
  guessed.opening->echo ^= 1;
  inject(kUnknownSource, kA, guessed.bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened, 0u);
  inject(kUnknownSource, kA, call.bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened, 1u);
}

TEST_F(FloodTest, ANumberThatWasNamedLongAgoIsNoSession) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  const ForgedFrame call = call_again(a);
  clock.advance(5s);
  inject(kUnknownSource, kA, call.bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened, 0u);
}

/// Otherwise the session that this side opens would replace the caller's, and the caller's messages would
/// fail.
TEST_F(FloodTest, ASourceThatHasBecomeAMemberSinceItWasAnsweredCallsAnew) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  const ForgedFrame call = call_again(a);
  ForgedFrame guessed = call;
  guessed.opening->echo ^= 1;
  a.book.insert(kUnknownSource);
  int resets = 0;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    const bool reset =
        wire::admit(packet.bytes, view) == wire::Refusal::none && view.kind == wire::FrameKind::reset;
    if (reset && to == kUnknownSource && view.reset.session == call.header.session) ++resets;
    return false;
  };
  inject(kUnknownSource, kA, guessed.bytes());
  pass(a);
  EXPECT_EQ(resets, 0) << "it was never answered";
  inject(kUnknownSource, kA, call.bytes());
  pass(a);
  EXPECT_EQ(resets, 1);
  EXPECT_EQ(a.counters().sessions_opened, 0u);
}

/// The token is for the name that the opening carries, whichever address of the caller the application has come to know.
TEST_F(FloodTest, ASourceThatHasBecomeAMemberByAnotherAddressCallsAnew) {
  Node a(network, kA, kB, 1000, nullptr, roomy());
  const SocketAddress other = kUnknownSource.with_port(7);
  flood(300);
  ForgedFrame call = ForgedFrame::call(kUnknownSource, 0xABCDEF, kLate);
  call.rails = {other};
  call.take_up(answer_to(call, a));
  a.book.insert(other);
  int resets = 0;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
    wire::FrameView view;
    const bool reset =
        wire::admit(packet.bytes, view) == wire::Refusal::none && view.kind == wire::FrameKind::reset;
    if (reset && view.reset.session == call.header.session) ++resets;
    return false;
  };
  ForgedFrame guessed = call;
  guessed.opening->echo ^= 1;
  inject(kUnknownSource, kA, guessed.bytes());
  pass(a);
  EXPECT_EQ(resets, 0) << "it was never answered";
  inject(kUnknownSource, kA, call.bytes());
  pass(a);
  EXPECT_EQ(resets, 1);
}

}  // namespace
}  // namespace cluster::engine
