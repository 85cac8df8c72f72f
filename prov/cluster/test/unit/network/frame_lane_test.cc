// Short messages between engines take the frame lane (reliability/frame_lane.h) unless a condition forbids
// it. The completions are the same as by the general road.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>
#include <vector>

#include "os/descriptor.h"
#include "support/node.h"

namespace cluster::test {
namespace {

transport::EngineSettings settings_with(bool lane) {
  transport::EngineSettings settings = node_settings();
  settings.frame_lane = lane;
  return settings;
}

/// Two nodes that have met.
struct LaneNodes : EngineTest {
  explicit LaneNodes(bool lane = true)
      : bell(eventfd(0, EFD_CLOEXEC)),
        a(with_bell(), kA, kB, 1, nullptr, settings_with(lane)),
        b(network, kB, kA, 2, nullptr, settings_with(lane)) {
    for (int i = 0; i < 10; ++i) {
      a.receive();
      b.receive();
      a.send();
      b.send();
      pass(a, b);
    }
    for (Node* node : {&a, &b}) {
      drain(node->sent);
      drain(node->received);
    }
  }
  void TestBody() override {}
  using EngineTest::clock;
  using EngineTest::network;

  static std::vector<protocol::Completion> drain(protocol::CompletionQueue& queue) {
    std::vector<protocol::Completion> all;
    queue.drain(
        1000, [](const protocol::Completion&) { return true; },
        [&](const protocol::Completion& completion) { all.push_back(completion); });
    return all;
  }
  static bool send_short(Node& node, void* context = nullptr,
                         protocol::CompletionLevel level = protocol::CompletionLevel::transmit) {
    ++node.word;
    return node.engine.take_frame_lane(0, protocol::ShortSend{.header = {.length = sizeof node.word},
                                                              .payload = &node.word,
                                                              .context = context,
                                                              .completion_level = level});
  }
  /// Time for a frame to arrive; then this node alone looks.
  void look(Node& node) {
    clock.advance(network.conditions.delay);
    node.engine.try_poll();
  }

  FakeNetwork& with_bell() {
    network.descriptors = {bell.number()};
    return network;
  }

  const os::Descriptor bell;  ///< it never rings
  Node a;
  Node b;
};

struct FrameLaneOfEngines : LaneNodes {};

TEST_F(FrameLaneOfEngines, CarriesAMessage) {
  const Counters a_before = a.counters();
  const Counters b_before = b.counters();
  b.receive();
  ASSERT_TRUE(send_short(a, &a));
  look(b);
  EXPECT_EQ(drain(b.received).size(), 1u);
  EXPECT_EQ(b.got, a.word);
  EXPECT_TRUE(drain(a.sent).empty()) << "nothing has acknowledged it yet";
  pass(a, b);
  const std::vector<protocol::Completion> sent = drain(a.sent);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].context, &a);
  EXPECT_EQ(a.counters().fast_sent, a_before.fast_sent + 1);
  EXPECT_EQ(b.counters().fast_received, b_before.fast_received + 1);
  EXPECT_EQ(a.counters().frames_sent, a_before.frames_sent + 1);
  EXPECT_TRUE(a.engine.quiescent());
  EXPECT_TRUE(b.engine.quiescent());
}

TEST_F(FrameLaneOfEngines, AnAnswerCompletesTheMessage) {
  a.receive();
  b.receive();
  ASSERT_TRUE(send_short(a));
  look(b);
  ASSERT_TRUE(send_short(b));
  look(a);
  EXPECT_EQ(drain(a.sent).size(), 1u);
  EXPECT_EQ(drain(a.received).size(), 1u);
  EXPECT_EQ(a.got, b.word);
}

TEST_F(FrameLaneOfEngines, EachMessageCompletesWithItsOwnContext) {
  std::vector<int> contexts(40);
  std::size_t by_lane = 0;
  for (int& context : contexts) {
    b.receive();
    // Some messages take the general road, and leave no request to the next.
    if ((&context - contexts.data()) % 5 != 4 && send_short(a, &context)) {
      ++by_lane;
    } else {
      const ConstBytes slice = as_bytes(&++a.word, sizeof a.word);
      ASSERT_EQ(a.engine.send({.slices = {&slice, 1}, .length = sizeof a.word, .context = &context}),
                Status::ok);
    }
    pass(a, b);
    const std::vector<protocol::Completion> sent = drain(a.sent);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].context, &context);
    EXPECT_EQ(sent[0].status, Status::ok);
    EXPECT_EQ(drain(b.received).size(), 1u);
    EXPECT_EQ(b.got, a.word);
  }
  EXPECT_GT(by_lane, 20u);
  EXPECT_TRUE(a.engine.quiescent());
}

TEST_F(FrameLaneOfEngines, ALookSettlesIt) {
  b.receive();
  ASSERT_TRUE(send_short(a));
  EXPECT_LE(a.engine.next_deadline(), clock.now()) << "the timer is not set yet";
  a.engine.try_poll();
  EXPECT_GT(a.engine.next_deadline(), clock.now());
  EXPECT_NE(a.engine.next_deadline(), kNever);
}

TEST_F(FrameLaneOfEngines, ManyUsesSettleThoughNoLookIsInVain) {
  int unsettled = 0;
  for (int i = 0; i < 200; ++i) {
    a.receive();
    b.receive();
    if (!send_short(a)) a.send();
    look(b);
    if (!send_short(b)) b.send();
    look(a);
    unsettled = a.engine.next_deadline() <= Time{} ? unsettled + 1 : 0;
    ASSERT_LE(unsettled, 32) << "each message that comes is answered";
  }
  EXPECT_GT(a.counters().fast_sent, 150u);
  EXPECT_GT(a.counters().fast_received, 150u);
}

TEST_F(FrameLaneOfEngines, ALostMessageIsRetransmitted) {
  b.receive();
  network.conditions.blackout = true;
  ASSERT_TRUE(send_short(a));
  network.conditions.blackout = false;
  pass(a, b);
  pass(a, b);
  EXPECT_EQ(drain(b.received).size(), 1u);
  EXPECT_EQ(drain(a.sent).size(), 1u);
  EXPECT_GT(a.counters().frames_retransmitted, 0u);
}

TEST_F(FrameLaneOfEngines, AMessageWithoutAReceiveIsStored) {
  ASSERT_TRUE(send_short(a));
  const std::uint64_t before = b.counters().fast_received;
  look(b);
  EXPECT_EQ(b.engine.unexpected_messages(), 1u);
  EXPECT_EQ(b.counters().fast_received, before);
  b.receive();
  EXPECT_EQ(drain(b.received).size(), 1u);
}

TEST_F(FrameLaneOfEngines, RefusesOtherLevels) {
  EXPECT_FALSE(send_short(a, nullptr, protocol::CompletionLevel::inject));
  EXPECT_FALSE(send_short(a, nullptr, protocol::CompletionLevel::delivery));
}

TEST_F(FrameLaneOfEngines, RefusesWhileManyAreInFlight) {
  int sent = 0;
  while (sent < 100 && send_short(a)) ++sent;
  EXPECT_EQ(sent, 8);
}

TEST_F(FrameLaneOfEngines, RefusesWhileMessagesShareFrames) {
  a.engine.run_in_background();
  while (a.counters().fast_sent < 300) {  // one by one, each before the last is acknowledged
    if (!send_short(a)) a.send();
    if (!send_short(a)) a.send();
    pass(a, b);
  }
  a.engine.run_in_background();
  pass(a, b);
  EXPECT_TRUE(send_short(a)) << "nothing is in flight";
  EXPECT_FALSE(send_short(a)) << "it may share a frame";
}

TEST_F(FrameLaneOfEngines, RefusesBehindAnOperationThatWaits) {
  const ConstBytes slice = as_bytes(&a.word, sizeof a.word);
  ASSERT_EQ(a.engine.send({.slices = {&slice, 1}, .length = sizeof a.word, .more = true}), Status::ok);
  EXPECT_FALSE(send_short(a));
}

TEST_F(FrameLaneOfEngines, RefusesWhileAThreadMaySleep) {
  ASSERT_TRUE(send_short(a));
  pass(a, b);
  ASSERT_TRUE(a.engine.arm());
  EXPECT_FALSE(send_short(a));
}

TEST_F(FrameLaneOfEngines, ACounterOfReceivesLeavesArrivalsToTheGeneralRoad) {
  protocol::Counter counter;
  b.engine.attach(b.book, {.tx_queue = &b.sent, .rx_queue = &b.received, .receive_counter = &counter});
  b.receive();
  const std::uint64_t before = b.counters().fast_received;
  ASSERT_TRUE(send_short(a));
  look(b);
  EXPECT_EQ(counter.value(), 1u);
  EXPECT_EQ(b.counters().fast_received, before);
}

TEST_F(FrameLaneOfEngines, AFailedPeerIsReported) {
  ASSERT_TRUE(send_short(a, &b));
  network.conditions.blackout = true;
  for (int i = 0; i < 700; ++i) {
    clock.advance(10ms);
    a.engine.try_poll();
  }
  const std::vector<protocol::Completion> sent = drain(a.sent);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].context, &b);
  EXPECT_NE(sent[0].status, Status::ok);
}

/// What the application of `b` and `a` sees of some random messages.
std::string played(std::uint64_t seed, bool lane, std::uint64_t& by_lane) {
  LaneNodes nodes(lane);
  nodes.network.conditions = {.loss = 0.01, .duplicate = 0.01, .delay = 5us, .jitter = 2us};
  FakeRandom random(seed);
  std::string seen;
  for (int i = 0; i < 400; ++i) {
    Node& from = random.one_in(0.5) ? nodes.a : nodes.b;
    Node& to = &from == &nodes.a ? nodes.b : nodes.a;
    const bool early = random.one_in(0.7);
    const bool plain = random.one_in(0.8);
    if (early) to.receive();
    if (!plain || !LaneNodes::send_short(from, &from)) {
      if (plain) --from.word;
      from.send();
    }
    if (!early) to.receive();
    std::size_t sent = 0;
    std::size_t received = 0;
    for (int turns = 0; turns < 2000 && sent + received < 2; ++turns) {
      nodes.clock.advance(5us);
      nodes.a.engine.try_poll();
      nodes.b.engine.try_poll();
      sent += LaneNodes::drain(from.sent).size();
      received += LaneNodes::drain(to.received).size();
    }
    seen += std::to_string(sent) + std::to_string(received) + " " + std::to_string(to.got) + ", ";
  }
  by_lane = nodes.a.counters().fast_sent + nodes.b.counters().fast_received;
  return seen;
}

TEST(FrameLaneSame, CompletionsAreThoseOfTheGeneralRoad) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::uint64_t with = 0;
    std::uint64_t without = 0;
    EXPECT_EQ(played(seed, true, with), played(seed, false, without));
    EXPECT_GT(with, 100u);
    EXPECT_EQ(without, 0u);
  }
}

}  // namespace
}  // namespace cluster::test
