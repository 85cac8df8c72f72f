// Short messages and writes between engines take the frame lane (reliability/frame_lane.h) unless a condition
// forbids it. The completions are the same as by the general path.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstring>
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
      take(node->sent);
      take(node->received);
    }
  }
  void TestBody() override {}
  using EngineTest::clock;
  using EngineTest::network;

  /// Polls for 7 s, until the peer that no frame reaches is lost. The only operation must then have failed.
  void expect_failure_of(const void* context) {
    for (int i = 0; i < 700; ++i) {
      clock.advance(10ms);
      a.engine.try_poll();
    }
    const std::vector<protocol::Completion> sent = take(a.sent);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].context, context);
    EXPECT_NE(sent[0].status, Status::ok);
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
  EXPECT_EQ(take(b.received).size(), 1u);
  EXPECT_EQ(b.got, a.word);
  EXPECT_TRUE(take(a.sent).empty()) << "nothing has acknowledged it yet";
  pass(a, b);
  const std::vector<protocol::Completion> sent = take(a.sent);
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
  EXPECT_EQ(take(a.sent).size(), 1u);
  EXPECT_EQ(take(a.received).size(), 1u);
  EXPECT_EQ(a.got, b.word);
}

TEST_F(FrameLaneOfEngines, EachMessageCompletesWithItsOwnContext) {
  std::vector<int> contexts(40);
  std::size_t by_lane = 0;
  for (int& context : contexts) {
    b.receive();
    // Some messages take the general path, and leave no request to the next.
    if ((&context - contexts.data()) % 5 != 4 && send_short(a, &context)) {
      ++by_lane;
    } else {
      const ConstBytes slice = as_bytes(&++a.word, sizeof a.word);
      ASSERT_EQ(a.engine.send({.slices = {&slice, 1}, .length = sizeof a.word, .context = &context}),
                Status::ok);
    }
    pass(a, b);
    const std::vector<protocol::Completion> sent = take(a.sent);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].context, &context);
    EXPECT_EQ(sent[0].status, Status::ok);
    EXPECT_EQ(take(b.received).size(), 1u);
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
  EXPECT_EQ(take(b.received).size(), 1u);
  EXPECT_EQ(take(a.sent).size(), 1u);
  EXPECT_GT(a.counters().frames_retransmitted, 0u);
}

TEST_F(FrameLaneOfEngines, AMessageWithoutAReceiveIsStored) {
  ASSERT_TRUE(send_short(a));
  const std::uint64_t before = b.counters().fast_received;
  look(b);
  EXPECT_EQ(b.engine.unexpected_messages(), 1u);
  EXPECT_EQ(b.counters().fast_received, before);
  b.receive();
  EXPECT_EQ(take(b.received).size(), 1u);
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

TEST_F(FrameLaneOfEngines, ACounterOfReceivesLeavesArrivalsToTheGeneralPath) {
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
  expect_failure_of(&b);
}

/// A base class, because the tables must outlive the nodes.
struct RegionTables {
  protocol::RegionTable of_a, of_b;
};

/// Both nodes let each other write into their memory.
struct FrameLaneOfWrites : RegionTables, LaneNodes {
  static constexpr std::size_t kBytes = 4096;

  explicit FrameLaneOfWrites(bool lane = true) : LaneNodes(lane) {
    serve(a, of_a, memory_a);
    serve(b, of_b, memory_b);
  }
  static void serve(Node& node, protocol::RegionTable& regions, std::vector<std::byte>& memory) {
    regions.add(1, {.base = memory.data(), .length = memory.size(), .readable = true, .writable = true});
    node.engine.attach(node.book, {.tx_queue = &node.sent, .rx_queue = &node.received, .regions = &regions});
  }
  static std::uint64_t word_in(const std::vector<std::byte>& memory) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data(), sizeof word);
    return word;
  }
  /// Returns true if the lane has taken the write. The lane leaves a turn behind, the general path does not.
  static bool write(Node& node, void* context = nullptr, std::uint64_t key = 1, std::uint64_t address = 0,
                    std::size_t length = sizeof(std::uint64_t), bool fence = false) {
    ++node.word;
    const std::vector<std::byte> bytes(length, static_cast<std::byte>(node.word));
    const ConstBytes slice = length == sizeof node.word ? as_bytes(&node.word, length) : ConstBytes(bytes);
    const protocol::RmaIov range{address, key, length};
    protocol::WriteOp op;
    op.remote = {&range, 1};
    op.slices = {&slice, 1};
    op.length = length;
    op.context = context;
    op.fence = fence;
    op.inject = true;
    EXPECT_EQ(node.engine.write(op), Status::ok);
    return node.engine.next_deadline() == Time{};
  }
  /// Each writes and sees the other's write, so that answers leave with writes.
  void get_used_to_answers() {
    for (int i = 0; i < 40; ++i) {
      write(a);
      look(b);
      write(b);
      look(a);
    }
    take(a.sent);
    take(b.sent);
  }

  std::vector<std::byte> memory_a = std::vector<std::byte>(kBytes), memory_b = memory_a;
};

TEST_F(FrameLaneOfWrites, CarriesAWriteAndItsAnswer) {
  const std::uint64_t frames_a = a.counters().frames_sent, frames_b = b.counters().frames_sent;
  const std::uint64_t bytes = b.counters().bytes_received;
  EXPECT_TRUE(write(a, &a));
  look(b);
  EXPECT_EQ(word_in(memory_b), a.word);
  EXPECT_TRUE(take(a.sent).empty()) << "nothing has answered yet";
  EXPECT_EQ(a.counters().frames_sent, frames_a + 1);
  EXPECT_EQ(b.counters().frames_sent, frames_b + 1) << "the answer leaves at once";
  pass(a, b);
  const std::vector<protocol::Completion> sent = take(a.sent);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].context, &a);
  EXPECT_EQ(sent[0].kind, protocol::Completion::Kind::write);
  EXPECT_EQ(sent[0].status, Status::ok);
  EXPECT_EQ(b.counters().bytes_received, bytes + 8);
  pass(a, b);
  EXPECT_TRUE(a.engine.quiescent());
  EXPECT_TRUE(b.engine.quiescent());
}

TEST_F(FrameLaneOfWrites, AnAnswerLeavesWithTheNextWriteOrMessage) {
  get_used_to_answers();
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t frames = a.counters().frames_sent + b.counters().frames_sent;
    const bool messages = i % 4 == 3;
    if (messages) a.receive();
    EXPECT_TRUE(write(a, &a)) << i;
    look(b);
    EXPECT_EQ(word_in(memory_b), a.word);
    EXPECT_TRUE(messages ? send_short(b) : write(b, &b)) << i;
    look(a);
    EXPECT_EQ(messages ? a.got : word_in(memory_a), b.word);
    const std::vector<protocol::Completion> sent = take(a.sent);
    ASSERT_EQ(sent.size(), 1u) << i;
    EXPECT_EQ(sent[0].context, &a);
    EXPECT_EQ(a.counters().frames_sent + b.counters().frames_sent, frames + 2) << i;
  }
}

TEST_F(FrameLaneOfWrites, AnAnswerThatNothingFollowsLeavesInTime) {
  get_used_to_answers();
  EXPECT_TRUE(write(a, &a));
  look(b);
  b.engine.try_poll();
  EXPECT_LE(b.engine.next_deadline(), clock.now() + 10us);
  for (int i = 0; i < 10; ++i) {
    clock.advance(10us);
    b.engine.try_poll();
    a.engine.try_poll();
  }
  EXPECT_EQ(take(a.sent).size(), 1u);
  EXPECT_EQ(a.counters().frames_retransmitted, 0u);
}

TEST_F(FrameLaneOfWrites, AForbiddenWriteFails) {
  const std::vector<std::byte> before = memory_b;
  struct Case {
    std::uint64_t key, address;
  };
  for (const Case& wrong : {Case{2, 0}, Case{1, kBytes - 7}, Case{1, ~std::uint64_t{0} - 3}}) {
    write(a, &a, wrong.key, wrong.address);
    pass(a, b);
    pass(a, b);
    const std::vector<protocol::Completion> sent = take(a.sent);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].status, Status::access);
    EXPECT_EQ(sent[0].context, &a);
  }
  of_b.remove(1);
  of_b.add(1, {.base = memory_b.data(), .length = kBytes, .readable = true});
  write(a, &a);
  pass(a, b);
  pass(a, b);
  const std::vector<protocol::Completion> sent = take(a.sent);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].status, Status::access);
  EXPECT_EQ(memory_b, before);
  EXPECT_EQ(b.counters().refused_access, 4u);
}

TEST_F(FrameLaneOfWrites, AStrangerMayNotWrite) {
  b.book.remove(0);
  const std::vector<std::byte> before = memory_b;
  write(a, &a);
  for (int i = 0; i < 4; ++i) pass(a, b);
  const std::vector<protocol::Completion> sent = take(a.sent);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].status, Status::access);
  EXPECT_EQ(memory_b, before);
}

TEST_F(FrameLaneOfWrites, CountersCount) {
  protocol::Counter of_endpoint, of_region, of_initiator;
  of_b.count(1, nullptr, &of_region);
  b.engine.attach(b.book, {.tx_queue = &b.sent,
                           .rx_queue = &b.received,
                           .remote_access = {.writes = &of_endpoint},
                           .regions = &of_b});
  a.engine.attach(a.book, {.tx_queue = &a.sent, .rx_queue = &a.received, .write_counter = &of_initiator});
  EXPECT_TRUE(write(a));
  pass(a, b);
  EXPECT_EQ(of_endpoint.value(), 1u);
  EXPECT_EQ(of_region.value(), 1u);
  EXPECT_EQ(of_initiator.value(), 1u);
}

TEST_F(FrameLaneOfWrites, ALostWriteIsRetransmittedAndExecutedOnce) {
  network.conditions.blackout = true;
  EXPECT_TRUE(write(a));
  network.conditions.blackout = false;
  pass(a, b);
  pass(a, b);
  EXPECT_EQ(word_in(memory_b), a.word);
  EXPECT_EQ(take(a.sent).size(), 1u);
  EXPECT_GT(a.counters().frames_retransmitted, 0u);
}

TEST_F(FrameLaneOfWrites, OtherWritesTakeTheGeneralPath) {
  EXPECT_FALSE(write(a, nullptr, 1, 0, 1440)) << "too long for one frame";
  pass(a, b);
  EXPECT_FALSE(write(a, nullptr, 1, 0, 8, true)) << "fenced";
  pass(a, b);
  EXPECT_TRUE(write(a, nullptr, 1, 0, 1000));
  pass(a, b);
  EXPECT_EQ(take(a.sent).size(), 3u);
}

TEST_F(FrameLaneOfWrites, AFailedPeerIsReported) {
  network.conditions.blackout = true;
  EXPECT_TRUE(write(a, &b));
  expect_failure_of(&b);
}

/// What the applications see of some random writes and messages. Writes of one side have distinct places.
std::string written(std::uint64_t seed, bool lane) {
  FrameLaneOfWrites nodes(lane);
  nodes.network.conditions = {.loss = 0.01, .duplicate = 0.01, .delay = 5us, .jitter = 2us};
  FakeRandom random(seed);
  std::string seen;
  for (int i = 0; i < 400; ++i) {
    Node& from = random.one_in(0.5) ? nodes.a : nodes.b;
    Node& to = &from == &nodes.a ? nodes.b : nodes.a;
    const std::vector<std::byte>& memory = &to == &nodes.a ? nodes.memory_a : nodes.memory_b;
    const bool message = random.one_in(0.2);
    const bool forbidden = random.one_in(0.02);
    const std::uint64_t length = random.one_in(0.7) ? 8 : random.below(2000);
    if (message) {
      to.receive();
      if (!LaneNodes::send_short(from, &from)) {
        --from.word;
        from.send();
      }
    } else {
      FrameLaneOfWrites::write(from, &from, forbidden ? 7 : 1, 0, length);
    }
    std::vector<protocol::Completion> sent;
    std::size_t received = 0;
    for (int turns = 0; turns < 4000 && (sent.empty() || (message && received == 0)); ++turns) {
      nodes.clock.advance(5us);
      nodes.a.engine.try_poll();
      nodes.b.engine.try_poll();
      for (const protocol::Completion& each : take(from.sent)) sent.push_back(each);
      received += take(to.received).size();
    }
    for (const protocol::Completion& each : sent)
      seen += std::to_string(static_cast<int>(each.kind)) + std::to_string(static_cast<int>(each.status));
    seen += ' ' + std::to_string(received) + ' ' + std::to_string(FrameLaneOfWrites::word_in(memory)) + ", ";
  }
  return seen;
}

TEST(FrameLaneSame, WritesAreThoseOfTheGeneralPath) {
  for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(written(seed, true), written(seed, false));
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
      sent += take(from.sent).size();
      received += take(to.received).size();
    }
    seen += std::to_string(sent) + std::to_string(received) + " " + std::to_string(to.got) + ", ";
  }
  by_lane = nodes.a.counters().fast_sent + nodes.b.counters().fast_received;
  return seen;
}

TEST(FrameLaneSame, CompletionsAreThoseOfTheGeneralPath) {
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
