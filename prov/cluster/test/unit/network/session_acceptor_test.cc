// First frames of a session: what a peer may do before it proves that it receives frames sent to the address
// it claims.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "protocol/region_table.h"
#include "support/node.h"
#include "wire/control.h"

namespace cluster::engine {
namespace {

using test::FakeNetwork;
using test::ForgedFrame;
using test::kA;
using test::kB;
using test::Node;

class SessionAcceptorTest : public test::EngineTest {
 protected:
  /// A process opens a session to `a` under b's name, and receives nothing of what is sent there.
  void forge_opening(std::uint64_t epoch) {
    std::optional<Node> forger(std::in_place, network, kB, kA, epoch);
    forger->send();
    network.conditions.blackout = true;
    forger.reset();
    network.conditions.blackout = false;
  }
  static Status put(Node& from, std::byte value) {
    const std::array bytes{value};
    const ConstBytes slice = bytes;
    const protocol::RmaIov range{0, 1, 1};
    protocol::WriteOp order;
    order.remote = {&range, 1};
    order.length = 1;
    order.slices = {&slice, 1};
    order.inject = true;
    return from.engine.write(order);
  }
};

TEST_F(SessionAcceptorTest, AnOpeningIsNotEndedByGuessedResets) {
  Node a(network, kA, kB, 1000);
  network.conditions.blackout = true;
  a.send();
  network.conditions.blackout = false;
  for (std::uint32_t transmission = 0; transmission < 6; ++transmission) {
    wire::FrameView quoted;
    quoted.transmission = {transmission};
    inject(kB, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::unknown_session).bytes());
  }
  pass(a);
  EXPECT_EQ(a.counters().sessions_closed, 0u);
  Node b(network, kB, kA, 1000);
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, 1u);
}

// Filters for IP do not see frames that come that way.
TEST_F(SessionAcceptorTest, AnEtherTypeFrameOpensNoSession) {
  std::vector<std::byte> call;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kA) call = packet.bytes;
    return to == kA;
  };
  Node b(network, kB, kA, 1000);
  b.send();
  network.drop = nullptr;
  ASSERT_FALSE(call.empty());
  Node a(network, kA, kB, 1000);
  inject(kB, kA, call, true);
  pass(a);
  EXPECT_EQ(a.counters().sessions_opened, 0u);
  EXPECT_EQ(a.counters().refused_malformed, 1u);
  inject(kB, kA, call);
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_opened, 1u);
}

TEST_F(SessionAcceptorTest, AnOpeningFromAnotherAddressIsReportedOnce) {
  std::vector<std::byte> call;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kA) call = packet.bytes;
    return to == kA;
  };
  Node b(network, kB, kA, 1000);
  b.send();
  network.drop = nullptr;
  Node a(network, kA, kB, 1000);
  for (int i = 0; i < 3; ++i) inject(test::kUnknownSource, kA, call);
  pass(a);
  EXPECT_EQ(a.counters().refused_malformed, 3u);
  EXPECT_EQ(a.logged(kB.text() + " is refused: its first frame came from " + test::kUnknownSource.text()),
            1u);
  clock.advance(61s);
  inject(test::kUnknownSource, kA, call);
  pass(a);
  EXPECT_EQ(a.logged("is refused"), 2u) << "once a minute";
}

/// A router between the nodes translates b's address: a sees b's frames at another address, and answers to
/// that one reach b.
class TranslatedTest : public SessionAcceptorTest {
 protected:
  static constexpr Duration kStep = 20ms;

  TranslatedTest() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (to == kA && packet.from == kB) calls_.push_back(packet.bytes);
      if (to == test::kUnknownSource) answers_.push_back(packet.bytes);
      return (to == kA && packet.from == kB) || to == test::kUnknownSource;
    };
  }
  /// Carries what waits in the router until this much time has passed.
  void translate(Node& a, Node& b, Duration lasts) {
    for (Duration time{}; time < lasts; time += kStep) {
      for (const auto& call : std::exchange(calls_, {})) inject(test::kUnknownSource, kA, call);
      pass(a);
      for (const auto& answer : std::exchange(answers_, {})) inject(kA, kB, answer);
      pass(b);
      clock.advance(kStep);
    }
  }
  std::vector<std::vector<std::byte>> calls_;
  std::vector<std::vector<std::byte>> answers_;
};

TEST_F(TranslatedTest, TheCallerHearsTheCauseAndTheCure) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  b.send();
  translate(a, b, 800ms);
  EXPECT_EQ(b.logged("is lost"), 0u) << "a may call b meanwhile";
  translate(a, b, 400ms);
  EXPECT_EQ(b.logged("is lost: a router between the nodes changes this node's address"), 1u);
  EXPECT_EQ(b.logged("FI_CLUSTER_IFACE"), 1u);
  EXPECT_EQ(a.counters().sessions_opened, 0u) << "the caller gets no session";
  EXPECT_EQ(a.logged("is refused: its first frame came from"), 1u);
}

TEST_F(TranslatedTest, ACallFromTheOtherSideInTheFirstSecondCounts) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  b.send();
  translate(a, b, 500ms);
  network.drop = nullptr;  // a's call passes, and so do the answers to it
  a.send();
  pass(a, b);
  clock.advance(2s);
  pass(a, b);
  EXPECT_EQ(b.counters().unexpected, 1u);
  EXPECT_EQ(a.counters().unexpected, 1u);
  EXPECT_EQ(b.logged("is lost"), 0u);
}

TEST_F(TranslatedTest, AGuessedAnswerEndsNothing) {
  Node b(network, kB, kA, 1000);
  b.send();
  for (Duration time{}; time < 2s; time += kStep) {
    wire::FrameView quoted;
    quoted.transmission = {static_cast<std::uint32_t>(time / kStep)};
    inject(kA, kB, wire::ControlFrame::reset(quoted, wire::ResetReason::foreign_source).bytes());
    pass(b);
    clock.advance(kStep);
  }
  EXPECT_EQ(b.logged("is lost"), 0u);
}

/// Both nodes have the address, for example that of a bridge for containers.
TEST_F(SessionAcceptorTest, APeerWithThisNodesOwnAddressIsLostWithACure) {
  const SocketAddress twin = kA.with_port(4711);
  Node a(network, kA, twin, 1000);
  network.absent = twin;
  a.send();
  for (int i = 0; i < 200; ++i) {
    pass(a);
    clock.advance(10ms);
  }
  EXPECT_EQ(a.logged("no endpoint has that port, and this node has the peer's address itself"), 1u);
}

TEST_F(SessionAcceptorTest, APeerThatHasAnsweredIsNotLostByAnAnswerAboutItsAddress) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  a.send();
  pass(a, b);
  std::vector<std::byte> last;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kB) last = packet.bytes;
    return to == kB;
  };
  a.send();
  pass(a);
  network.drop = nullptr;
  wire::FrameView quoted;
  ASSERT_EQ(wire::admit(last, quoted), wire::Refusal::none);
  for (int i = 0; i < 150; ++i) {
    inject(kB, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::foreign_source).bytes());
    pass(a);
    clock.advance(20ms);
  }
  EXPECT_EQ(a.logged("is lost"), 0u);
}

TEST_F(SessionAcceptorTest, AnOpeningIsEndedByAResetThatQuotesIt) {
  Node a(network, kA, kB, 1000);
  std::vector<std::byte> call;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kB) call = packet.bytes;
    return to == kB;
  };
  a.send();
  wire::FrameView quoted;
  ASSERT_EQ(wire::admit(call, quoted), wire::Refusal::none);
  inject(kB, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::unknown_session).bytes());
  pass(a);
  EXPECT_EQ(a.counters().sessions_closed, 1u);
}

TEST_F(SessionAcceptorTest, AForgedOpeningDoesNotDisturbOurs) {
  Node a(network, kA, kB, 1000);
  network.conditions.blackout = true;
  a.send();
  network.conditions.blackout = false;
  forge_opening(5000);
  pass(a);
  EXPECT_EQ(a.counters().unexpected, 0u) << "what it brings is not taken";
  Node b(network, kB, kA, 1000);
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().unexpected, 1u);
  EXPECT_EQ(b.counters().unexpected, 1u);
  EXPECT_EQ(a.counters().sessions_closed + b.counters().sessions_closed, 0u);
}

/// Both sides open at once, and b has begun anew: b's second incarnation has a message for the session that a
/// opened to the first, and that a gives up when it learns that the first is no more.
class AbandonedOpening : public SessionAcceptorTest {
 protected:
  AbandonedOpening() {
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress&) {
      if (early_call.empty()) early_call = packet.bytes;  // not its goodbye
      return true;
    };
    Node(network, kA, kB, 500).send();
    network.drop = nullptr;
    a.emplace(network, kA, kB, 1000);
    std::vector<std::byte> answer;
    a->send();
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool admitted = wire::admit(packet.bytes, view) == wire::Refusal::none;
      if (to == kA && admitted && view.session != 0) answer = packet.bytes;
      return to == kA;
    };
    {
      Node first(network, kB, kA, 1000);
      first.send();
      pass(first);
      network.conditions.blackout = true;
    }
    network.conditions.blackout = false;
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool addressed = wire::admit(packet.bytes, view) == wire::Refusal::none && view.session != 0;
      if (to == kB && addressed && view.has_opening) offer = packet.bytes;
      return to == kA && addressed;
    };
    second.emplace(network, kB, kA, 2000);
    second->send();
    pass(*a, *second);
    network.drop = nullptr;
    EXPECT_FALSE(answer.empty());
    late_answer = std::move(answer);
  }

  std::optional<Node> a;
  std::optional<Node> second;
  std::vector<std::byte> late_answer;  ///< of b's first incarnation
  std::vector<std::byte> early_call;   ///< of the incarnation of a before this one
  std::vector<std::byte> offer;        ///< of a's session to b's second incarnation
};

TEST_F(AbandonedOpening, CostsNoMessage) {
  inject(kB, kA, late_answer);
  pass(*a);
  pass(*second);
  pass(*a);
  ASSERT_EQ(a->counters().sessions_closed, 1u) << "that with the first incarnation";
  for (int i = 0; i < 20; ++i) pass(*a, *second);
  EXPECT_EQ(a->counters().unexpected, 1u);
  EXPECT_EQ(second->counters().sessions_closed, 0u);
  EXPECT_TRUE(second->engine.quiescent());
}

TEST_F(AbandonedOpening, IsNotBroughtBackByALateFrame) {
  inject(kB, kA, late_answer);
  pass(*a);
  pass(*second);
  bool late = false;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    const bool reopening = to == kA && wire::admit(packet.bytes, view) == wire::Refusal::none &&
                           view.session == 0 && view.sequenced() && !late;
    if (reopening) inject(kA, kB, offer);
    late |= reopening;
    return reopening;
  };
  for (int i = 0; i < 40; ++i) pass(*a, *second);
  network.drop = nullptr;  // the nodes say goodbye when `late` is no more
  EXPECT_TRUE(late);
  EXPECT_EQ(a->counters().unexpected, 1u);
  EXPECT_EQ(second->counters().sessions_opened, 2u) << "that which ended, and the one after it";
}

/// Found by the simulator (seed 5277121240): when b gave up the session, it also forgot a's present
/// incarnation.
TEST_F(AbandonedOpening, LeavesACallOfAnEarlierIncarnationUnanswered) {
  wire::FrameView call;
  ASSERT_EQ(wire::admit(early_call, call), wire::Refusal::none);
  inject(kB, kA, late_answer);
  pass(*a);
  pass(*second);
  pass(*a);
  std::size_t answers = 0;
  bool reopened = false;
  network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameView view;
    if (to != kA || wire::admit(packet.bytes, view) != wire::Refusal::none) return false;
    answers += view.session == call.opening.session ? 1 : 0;
    if (view.session == 0 && view.sequenced() && !std::exchange(reopened, true)) inject(kA, kB, early_call);
    return false;
  };
  for (int i = 0; i < 40; ++i) pass(*a, *second);
  network.drop = nullptr;
  EXPECT_TRUE(reopened);
  EXPECT_EQ(answers, 0u);
  EXPECT_EQ(a->counters().unexpected, 1u);
  EXPECT_EQ(second->counters().sessions_closed, 0u);
}

// Messages that the ended incarnation had taken must not be delivered to the next.
TEST_F(AbandonedOpening, OfAPeerThatHasBegunAnewIsOver) {
  network.conditions.blackout = true;
  a.reset();
  network.conditions.blackout = false;
  a.emplace(network, kA, kB, 3000);
  for (int i = 0; i < 20; ++i) pass(*a, *second);
  EXPECT_EQ(a->counters().unexpected, 0u);
  EXPECT_EQ(second->counters().sessions_closed, 1u);
}

/// Found by the simulator (seed 13961950263356362243): a loses b before b has learned of a's session. Then a
/// calls again, and b, which the test plays, answers with the session that a knew already.
class SessionNamedAgain : public SessionAcceptorTest {
 protected:
  SessionNamedAgain() {
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      const bool sequenced =
          to == kB && wire::admit(packet.bytes, view) == wire::Refusal::none && view.sequenced();
      if (sequenced) last = packet.bytes;
      if (sequenced && view.has_opening) opening = view.opening;
      used_again |= sequenced && closed && view.session == b.opening->session;
      return to == kB;
    };
    a.send();
    pass(a);
  }
  void answer() {
    b.take_up(opening);
    inject(kB, kA, b.bytes());
    pass(a);
  }
  void lose() {
    wire::FrameView quoted;
    ASSERT_EQ(wire::admit(last, quoted), wire::Refusal::none);
    inject(kB, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::stale_epoch, 2000).bytes());
    pass(a);
    ASSERT_EQ(a.counters().sessions_closed, 1u);
    closed = true;
    a.send();
    pass(a);
  }

  wire::Opening opening;        ///< of a's last session
  std::vector<std::byte> last;  ///< the last frame with data from a
  bool closed = false;          ///< a has lost b
  bool used_again = false;      ///< a has sent data to the session that b names since then
  ForgedFrame b = ForgedFrame::call(kB, 0xABCDEF, 1500);
  Node a{network, kA, kB, 1000};
};

TEST_F(SessionNamedAgain, MayBeUsedIfNothingOfItHasArrived) {
  const ForgedFrame with_message = b;
  b.segment.reset();
  b.payload.clear();
  b.header = {};
  answer();
  lose();
  answer();
  EXPECT_TRUE(used_again);
  b = with_message;
  answer();
  EXPECT_EQ(a.counters().unexpected, 1u);
}

TEST_F(SessionNamedAgain, IsRefusedIfAMessageOfItHasArrived) {
  answer();
  ASSERT_EQ(a.counters().unexpected, 1u);
  lose();
  answer();
  EXPECT_FALSE(used_again);
  EXPECT_EQ(a.counters().unexpected, 1u) << "the message has been delivered twice";
}

/// Found by the simulator (seed 2469816487130402742).
TEST_F(SessionNamedAgain, AnotherIsNewAlsoIfItsClockWasSetBack) {
  answer();
  lose();
  b = ForgedFrame::call(kB, 0xFEDCBA, 1200);
  answer();
  EXPECT_TRUE(used_again);
  EXPECT_EQ(a.counters().unexpected, 2u);
}

/// Found by the simulator (keyed seed 14038218485228853861): b names a session, does not use it, and calls.
class SecondSession : public SessionNamedAgain {
 protected:
  ~SecondSession() override {
    network.drop = [](const FakeNetwork::Packet&, const SocketAddress& to) { return to == kB; };
  }
  /// b names a session in the first incarnation and calls in the second. Then it takes up the answer.
  void begin(std::uint16_t first, std::uint16_t second) {
    b.segment.reset();
    b.payload.clear();
    b.header = {};
    b.opening->incarnation = first;
    answer();
    next.opening->incarnation = second;
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (to != kB || wire::admit(packet.bytes, view) != wire::Refusal::none) return to == kB;
      if (view.session == next.opening->session && view.has_opening) answered = view.opening;
      if (view.sequenced()) last = packet.bytes;
      calls_again |= refused && view.session == 0 && view.sequenced();
      return true;
    };
    inject(kB, kA, next.bytes());
    pass(a);
    next.take_up(answered);
    inject(kB, kA, next.bytes());
    pass(a);
  }

  ForgedFrame next = ForgedFrame::call(kB, 0xFEDCBA, 1600);
  wire::Opening answered;  ///< of a's answer to the call
  bool refused = false;
  bool calls_again = false;
};

TEST_F(SecondSession, OfTheSameIncarnationEndsNothing) {
  begin(77, 77);
  EXPECT_EQ(a.counters().sessions_closed, 0U);
  wire::FrameView quoted;
  ASSERT_EQ(wire::admit(last, quoted), wire::Refusal::none);
  inject(kB, kA, wire::ControlFrame::reset(quoted, wire::ResetReason::unknown_session, 1400).bytes());
  refused = true;
  pass(a);
  EXPECT_TRUE(calls_again);
  EXPECT_EQ(a.counters().sessions_closed, 0U);
}

TEST_F(SecondSession, OfAnotherIncarnationEndsTheFirst) {
  begin(77, 78);
  EXPECT_EQ(a.counters().sessions_closed, 1U);
}

TEST_F(SecondSession, OfAnUnknownIncarnationEndsTheFirst) {
  begin(0, 0);
  EXPECT_EQ(a.counters().sessions_closed, 1U);
}

/// Found by the simulator (seed 17443150295646217013): a has lost b's present incarnation, of which nothing
/// had arrived, and then a call comes.
class CallAfterUnusedSession : public SessionNamedAgain {
 protected:
  CallAfterUnusedSession() {
    b.segment.reset();
    b.payload.clear();
    b.header = {};
    answer();
    lose();
  }
  ~CallAfterUnusedSession() override { network.drop = nullptr; }  // a still sends when it ends
  void call(std::uint32_t session, std::uint64_t epoch) {
    network.drop = [this, session](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (to != kB || wire::admit(packet.bytes, view) != wire::Refusal::none) return to == kB;
      answers += view.session == session ? 1 : 0;
      resets += view.kind == wire::FrameKind::reset ? 1 : 0;
      return true;
    };
    inject(kB, kA, ForgedFrame::call(kB, session, epoch).bytes());
    pass(a);
  }

  std::size_t answers = 0;
  std::size_t resets = 0;
};

TEST_F(CallAfterUnusedSession, OfAnEarlierIncarnationIsRefused) {
  call(0xFEDCBA, b.opening->epoch - 1);
  EXPECT_EQ(answers, 0u);
  EXPECT_EQ(resets, 1u);
}

TEST_F(CallAfterUnusedSession, WithThatSessionIsAnswered) {
  call(b.opening->session, b.opening->epoch);
  EXPECT_EQ(answers, 1u);
  EXPECT_EQ(resets, 0u);
}

TEST_F(SessionAcceptorTest, SimultaneousOpeningsBothSucceed) {
  Node a(network, kA, kB, 1000);
  Node b(network, kB, kA, 1000);
  for (int i = 0; i < 3; ++i) {
    a.send();
    b.send();
  }
  pass(a, b);
  EXPECT_EQ(a.counters().unexpected, 3u);
  EXPECT_EQ(b.counters().unexpected, 3u);
  EXPECT_EQ(a.counters().timeouts + b.counters().timeouts, 0u) << "no longer than a round trip";
  EXPECT_TRUE(a.engine.quiescent() && b.engine.quiescent());
}

TEST_F(SessionAcceptorTest, ASessionThatIsNotValidatedTouchesNoMemory) {
  std::array<std::byte, 1> memory{};
  protocol::RegionTable regions;
  regions.add(1, {memory.data(), 0, memory.size(), true, true, nullptr, nullptr});
  Node a(network, kA, kB, 1000);
  a.engine.attach(a.book, {.tx_queue = &a.sent, .rx_queue = &a.received, .regions = &regions});
  {
    Node forger(network, kB, kA, 1000);
    ASSERT_EQ(put(forger, std::byte{1}), Status::ok);
    network.conditions.blackout = true;
  }
  network.conditions.blackout = false;
  pass(a);
  EXPECT_EQ(memory[0], std::byte{0});
  Node b(network, kB, kA, 2000);
  ASSERT_EQ(put(b, std::byte{2}), Status::ok);
  pass(a, b);
  EXPECT_EQ(memory[0], std::byte{2}) << "a validated session may";
  EXPECT_TRUE(b.engine.quiescent());
}

}  // namespace
}  // namespace cluster::engine
