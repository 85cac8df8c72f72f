// Whole engines between fake links: how unknown sources, forgers and restarted peers may affect one.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "network/session_secrets.h"
#include "support/fake_environment.h"
#include "support/forged_frame.h"
#include "support/node.h"
#include "wire/control.h"

namespace cluster::engine {
namespace {

using test::FakeNetwork;
using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kFlowsMax;
using test::kUnknownSource;
using test::Node;

/// Epoch of a process that began an hour after those that began at 1000 ns.
constexpr std::uint64_t kLater = 3'600'000'000'000;

class SessionTableTest : public test::EngineTest {
 protected:
  /// With what number a's frames to b begin.
  void overhear_first() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool opens =
          to == kB && wire::admit(packet.bytes, view) == wire::Refusal::none && view.has_opening;
      if (opens && first == 0) first = view.opening.session;
      return false;
    };
  }
  /// What a forger would send that guesses that few frames have been sent yet, and knows with what number they begin.
  void inject_guessed_resets(const SocketAddress& from, std::uint32_t session) {
    ASSERT_NE(first, 0u);
    for (std::uint32_t sequence = first; sequence != first + 4; ++sequence) {
      for (std::uint32_t transmission = 0; transmission < 6; ++transmission) {
        wire::FrameView quoted;
        quoted.session = session;
        quoted.sequence = {sequence};
        quoted.transmission = {transmission};
        inject(from, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::unknown_session).bytes());
      }
    }
  }

  std::uint32_t first = 0;
};

TEST_F(SessionTableTest, AResetCountsOnlyFromTheAddressee) {
  overhear_first();
  Node a(network, kA, kB, 1000);
  a.send();
  inject_guessed_resets(kUnknownSource, 0);
  pass(a);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  EXPECT_TRUE(a.sent.empty());
}

TEST_F(SessionTableTest, AnOpenSessionIsNotEndedByAResetWithoutSession) {
  overhear_first();
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  a.send();
  pass(a, b);
  network.conditions.blackout = true;  // keeps a frame in flight
  a.send();
  network.conditions.blackout = false;
  inject_guessed_resets(kB, 0);
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
}

TEST_F(SessionTableTest, AFailureMarkDoesNotHitTheNextIncarnation) {
  Node a(network, kA, kB, 1000);
  {
    Node b(network, kB, kA, 1000);
    a.send();
    pass(a, b);
    network.conditions.blackout = true;  // ends without a fin
  }
  network.conditions.blackout = false;
  Node restarted(network, kB, kA, 2000);
  a.send();
  clock.advance(20us);
  restarted.engine.poll();  // refuses a frame for its predecessor...
  restarted.send();         // ...and opens a session of its own: both arrive in one turn
  clock.advance(20us);
  a.engine.poll();
  pass(a, restarted);
  EXPECT_EQ(a.counters().sessions_opened, 2u);
  EXPECT_EQ(a.counters().sessions_closed, 1u) << "the new session was ended by the old one's reset";
  a.send();
  pass(a, restarted);
  EXPECT_EQ(a.counters().sessions_closed, 1u);
  EXPECT_EQ(restarted.counters().sessions_closed, 0u);
}

TEST_F(SessionTableTest, ASessionThatIsOverDoesNotBeginAgain) {
  Node a(network, kA, kB, 1000);
  std::vector<std::vector<std::byte>> first_frames;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kA && (packet.bytes[3] & std::byte{wire::frame_flag::kSequenced}) != std::byte{0}) {
      first_frames.push_back(packet.bytes);
    }
    return false;
  };
  {
    Node b(network, kB, kA, 1000);
    b.send();
    pass(a, b);
  }
  pass(a);
  ASSERT_EQ(a.counters().sessions_closed, 1u) << "b has closed";
  ASSERT_FALSE(first_frames.empty());
  inject(kB, kA, first_frames.front());  // a copy that the network had kept
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened, 1u) << "what it brings has been handed on before";
  EXPECT_EQ(a.counters().unexpected, 1u);
}

/// Found by the simulator (seeds 910001961 and 1100000686): two processes forever used different sessions.
class NextIncarnationTest : public SessionTableTest, public testing::WithParamInterface<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(ClockHasGone, NextIncarnationTest, testing::Values(2000, 500),
                         [](const auto& epoch) { return epoch.param == 2000 ? "On" : "Back"; });

TEST_P(NextIncarnationTest, ALateCopyOfAnOpeningDoesNotBindIt) {
  std::vector<std::byte> call;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kB && call.empty()) call = packet.bytes;
    return false;
  };
  Node a(network, kA, kB, 1000);
  {
    Node b(network, kB, kA, 1000);
    a.send();
    pass(a, b);
    network.conditions.blackout = true;  // ends without a fin
  }
  network.conditions.blackout = false;
  Node restarted(network, kB, kA, GetParam());
  inject(kA, kB, call);
  pass(restarted);
  EXPECT_EQ(restarted.counters().sessions_opened, 0u) << "a call alone opens nothing";
  restarted.send();
  for (int millisecond = 0; millisecond < 20; ++millisecond) pass(a, restarted);
  // If its clock went back, its first session looks older than its predecessor's, and a refuses it.
  const std::uint64_t refused = GetParam() < 1000 ? 1 : 0;
  EXPECT_EQ(restarted.counters().sessions_closed, refused);
  const std::uint64_t carried = network.carried;
  for (int millisecond = 0; millisecond < 20; ++millisecond) pass(a, restarted);
  EXPECT_EQ(network.carried, carried) << "they go on and on";
  restarted.send();
  for (int millisecond = 0; millisecond < 20; ++millisecond) pass(a, restarted);
  EXPECT_EQ(a.counters().unexpected, 2u - refused);
}

/// Found by the simulator (seed 1200010190): an opening of an earlier incarnation took the place of the last
/// session, and late frames of that one were newer than it.
TEST_F(SessionTableTest, ASessionThatIsOverDoesNotBeginAgainAfterAnOlderOpening) {
  std::vector<std::vector<std::byte>> calls;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kA) calls.push_back(packet.bytes);
    return to == kA;
  };
  auto earlier = std::make_unique<Node>(network, kB, kA, 1500);
  earlier->send();
  network.conditions.blackout = true;  // ends without a fin
  earlier.reset();
  network.conditions.blackout = false;
  Node a(network, kA, kB, 1000);
  auto b = std::make_unique<Node>(network, kB, kA, kLater);
  b->send();
  network.drop = nullptr;
  ASSERT_GE(calls.size(), 2u);
  inject(kB, kA, calls.back());
  a.engine.poll();
  inject(kB, kA, calls.front());
  for (int i = 0; i < 10; ++i) pass(a, *b);
  ASSERT_EQ(a.counters().unexpected, 1u);
  b.reset();
  for (int second = 0; second < 40; ++second) {
    inject(kB, kA, calls.back());
    pass(a);
    clock.advance(1s);
  }
  EXPECT_EQ(a.counters().unexpected, 1u);
  EXPECT_EQ(a.counters().sessions_closed, 1u) << "another session has taken the place of the closed one";
}

TEST_F(SessionTableTest, UnknownSourcesFindALimitThatKnownPeersDoNot) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  std::vector<std::unique_ptr<Node>> unknown;
  for (std::uint16_t port = 1; port <= 6; ++port) {
    unknown.push_back(std::make_unique<Node>(network, kUnknownSource.with_port(port), kA, 1000));
    unknown.back()->send();
  }
  for (int i = 0; i < 4; ++i) {
    pass(a);
    for (const auto& node : unknown) node->engine.poll();
  }
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened, kFlowsMax);
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_opened, kFlowsMax + 1) << "b is in the address vector";
}

// Any process can write an opening that claims to be the peer's next incarnation. A node that never polls
// stands
TEST_F(SessionTableTest, AForgedNextIncarnationDoesNotEndASession) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  a.send();
  pass(a, b);
  for (std::uint64_t epoch = kLater; epoch < kLater + 10; ++epoch) {
    Node forger(network, kB, kA, epoch);
    forger.send();
    network.conditions.blackout = true;  // its close notice is lost
  }
  network.conditions.blackout = false;
  for (int i = 0; i < 50; ++i) pass(a, b);
  a.send();
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  EXPECT_EQ(b.counters().sessions_closed, 0u);
  EXPECT_EQ(a.counters().eager_sent + b.counters().eager_sent, 3u);
  EXPECT_TRUE(a.engine.quiescent() && b.engine.quiescent());
}

TEST_F(SessionTableTest, AGenuineNextIncarnationReplacesAnIdleOneWithoutLoss) {
  Node a(network, kA, kB, 1000);
  {
    Node b(network, kB, kA, 1000);
    a.send();
    pass(a, b);
    network.conditions.blackout = true;  // ends without a fin
  }
  network.conditions.blackout = false;
  Node restarted(network, kB, kA, kLater);
  restarted.send();
  pass(a, restarted);
  EXPECT_EQ(a.counters().unexpected, 1u) << "its first message has come, once";
  EXPECT_EQ(a.counters().sessions_closed, 1u);
  EXPECT_EQ(restarted.counters().sessions_closed, 0u);
  EXPECT_EQ(restarted.counters().timeouts, 0u) << "it had to send again at once";
  a.send();
  pass(a, restarted);
  EXPECT_EQ(restarted.counters().unexpected, 1u);
}

TEST_F(SessionTableTest, AHalfOpenSessionTimesOutAndOneInUseDoesNot) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  {
    Node forger(network, kUnknownSource, kA, 1000);
    forger.send();
    network.conditions.blackout = true;
  }
  network.conditions.blackout = false;
  b.send();
  for (int i = 0; i < 400; ++i) {
    pass(a, b);
    clock.advance(50ms);
  }
  EXPECT_EQ(a.counters().sessions_opened, 1u);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  a.send();
  pass(a, b);
  EXPECT_EQ(b.counters().sessions_opened, 1u) << "b sent nothing, but was reached";
  EXPECT_EQ(b.counters().unexpected, 1u);
}

/// Observed between two nodes with 192 endpoints: each process took a turn only every few seconds.
TEST_F(SessionTableTest, OneThatWasNamedToAMemberIsThereWhenItTurnsToIt) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  b.send();
  for (int i = 0; i < 40; ++i) {
    clock.advance(500ms);
    pass(a);
  }
  a.send();
  pass(a, b);
  EXPECT_EQ(a.counters().unexpected + b.counters().unexpected, 2u);
  EXPECT_EQ(a.counters().sessions_opened + b.counters().sessions_opened, 2u);
  EXPECT_EQ(a.counters().refused_stale, 0u);
}

/// It had named it with a later epoch, to a call that came while it had one of its own.
TEST_F(SessionTableTest, OneThatThePeerHasGivenUpBeforeItWasUsedKeepsNoOtherOut) {
  constexpr std::uint64_t epoch_of_b = 2000;
  test::FakeRandom random_of_b(epoch_of_b);
  const network::SessionSecrets secrets_of_b(SipHash{random_of_b.next(), random_of_b.next()});
  Node a(network, kA, kB, 1000);
  ForgedFrame answer = ForgedFrame::call(kB, 0xABCDEF, 5000);
  answer.opening->token = secrets_of_b.token_of(answer.opening->session, kA);
  answer.segment.reset();
  answer.payload.clear();
  answer.header = {};
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    if (to == kB && wire::admit(packet.bytes, view) == wire::Refusal::none && view.has_opening)
      answer.take_up(view.opening);
    return to == kB;
  };
  a.send();
  pass(a);
  inject(kB, kA, answer.bytes());
  pass(a);
  network.drop = nullptr;
  Node b(network, kB, kA, epoch_of_b);
  b.send();
  for (int i = 0; i < 200; ++i) {
    clock.advance(5ms);
    pass(a, b);
  }
  EXPECT_EQ(a.counters().sessions_closed + b.counters().sessions_closed, 0u);
  EXPECT_EQ(a.counters().unexpected, 1u);
  EXPECT_EQ(b.counters().unexpected, 1u);
}

/// Found by the simulator (seed 17443150295646211477, with keys): the clock of b's next incarnation was set
/// back, so that its sessions seemed to begin before the one that its predecessor had named and used.
TEST_F(SessionTableTest, OneThatAnEarlierIncarnationHasUsedIsOverAlsoIfTheClockWasSetBack) {
  Node a(network, kA, kB, 1000);
  {
    Node b(network, kB, kA, 5000);
    a.send();
    network.drop = [](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool admitted = wire::admit(packet.bytes, view) == wire::Refusal::none;
      return to == kA && admitted && view.acknowledges();
    };
    pass(a, b);
    ASSERT_EQ(b.counters().unexpected, 1u);
    network.conditions.blackout = true;  // ends without a fin
  }
  network.conditions.blackout = false;
  network.drop = nullptr;
  Node restarted(network, kB, kA, 2000);
  for (int i = 0; i < 200; ++i) {
    clock.advance(5ms);
    pass(a, restarted);
  }
  EXPECT_EQ(restarted.counters().unexpected, 0u) << "the message has been delivered twice";
  EXPECT_EQ(a.counters().sessions_closed, 1u);
  a.send();
  for (int i = 0; i < 20; ++i) pass(a, restarted);
  EXPECT_EQ(restarted.counters().unexpected, 1u);
}

TEST_F(SessionTableTest, AForgedNameGoesToThePeerThatReceivesWhatIsSentThere) {
  Node a(network, kA, kB, 1000);
  {
    Node squatter(network, kB, kA, wire::kEpochEnd - 1'000'000'000'000);
    squatter.send();
    network.conditions.blackout = true;
  }
  network.conditions.blackout = false;
  pass(a);
  Node b(network, kB, kA, 2000);
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().unexpected, 1u) << "that of b";
  EXPECT_EQ(b.counters().sessions_closed, 0u);
}

TEST_F(SessionTableTest, AnEpochWithoutSuccessorsIsNotAdopted) {
  Node a(network, kA, kB, 1000);
  std::vector<std::byte> call;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kB) call = packet.bytes;
    return to == kB;
  };
  a.send();
  network.drop = nullptr;
  wire::FrameView quoted;
  ASSERT_EQ(wire::admit(call, quoted), wire::Refusal::none);
  const std::uint64_t last = wire::kEpochEnd - 1;
  inject(kB, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::stale_epoch, last).bytes());
  pass(a);
  ASSERT_EQ(a.counters().sessions_closed, 1u);
  Node b(network, kB, kA, 1000);
  a.send();
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, 1u);
}

}  // namespace
}  // namespace cluster::engine
