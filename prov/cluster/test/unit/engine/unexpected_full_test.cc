// Unexpected messages: when no more can be stored, their senders wait and nothing is lost.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::kFlowsMax;
using test::kUnknownSource;
using test::Node;

constexpr std::size_t kOfOne = 4;  ///< what one peer may have stored
constexpr std::uint64_t kManyMessages = 300;

class UnexpectedFullTest : public test::EngineTest {
 protected:
  static EngineSettings narrow() {
    EngineSettings settings = test::node_settings();
    settings.unexpected_max = 8 * kOfOne;
    return settings;
  }
};

TEST_F(UnexpectedFullTest, ASenderWaitsWhileTheStoreIsFullAndNothingIsLost) {
  Node a(network, kA, kB, 1000, nullptr, narrow());
  Node b(network, kB, kA, 1000);
  for (std::uint64_t i = 0; i < kManyMessages; ++i) b.send();
  pass(a, b);
  EXPECT_EQ(a.engine.unexpected_messages(), kOfOne);
  EXPECT_GT(a.counters().unexpected_full, 0u);
  for (int second = 0; second < 30; ++second) {
    clock.advance(1s);
    pass(a, b);
  }
  EXPECT_EQ(b.counters().sessions_closed, 0u) << "a waiting sender is not dead";
  for (std::uint64_t i = 1; i <= kManyMessages; ++i) {
    a.receive();
    clock.advance(10us);
    a.engine.poll();
    b.engine.poll();
    EXPECT_EQ(a.got, i);
  }
  EXPECT_EQ(test::take_count(a.received), kManyMessages);
  EXPECT_EQ(b.counters().refused_window + a.counters().refused_window, 0u);
}

/// It shares a frame with a message, and the application may post no receive before it comes.
TEST_F(UnexpectedFullTest, AnAnswerComesThoughTheMessagesBeforeItHadToWait) {
  Node a(network, kA, kB, 1000, nullptr, narrow());
  Node b(network, kB, kA, 1000);
  for (std::uint64_t i = 0; i < kManyMessages; ++i) b.send();
  pass(a, b);
  b.receive();
  const ConstBytes slice = as_bytes(&a.word, sizeof a.word);
  ASSERT_EQ(a.engine.send({.slices = {&slice, 1},
                           .length = sizeof a.word,
                           .completion_level = protocol::CompletionLevel::delivery}),
            Status::ok);
  for (int i = 0; i < 100 && test::take_count(b.received) == 0; ++i) {
    clock.advance(1us);
    b.engine.poll();
  }
  EXPECT_GT(a.counters().unexpected_full, 0u) << "messages wait";
  const std::uint64_t before = b.counters().frames_sent;
  b.send();
  EXPECT_EQ(b.counters().frames_sent, before + 1) << "message and answer in one frame";
  EXPECT_TRUE(a.sent.empty());
  pass(a, b);
  EXPECT_FALSE(a.sent.empty());
}

TEST_F(UnexpectedFullTest, AReceiveThatWaitsIsServedThoughTheStoreIsFull) {
  Node a(network, kA, kB, 1000, nullptr, narrow());
  Node b(network, kB, kA, 1000);
  for (std::uint64_t i = 0; i < kOfOne; ++i) b.send();
  pass(a, b);
  for (std::uint64_t i = 0; i < kOfOne + 1; ++i) a.receive();
  for (std::uint64_t i = 0; i < kOfOne + 2; ++i) b.send();
  pass(a, b);
  EXPECT_EQ(test::take_count(a.received), kOfOne + 1);
  EXPECT_EQ(a.engine.unexpected_messages(), kOfOne);
}

TEST_F(UnexpectedFullTest, MessagesOfAPeerThatClosedWhileTheyWaitedStillCome) {
  Node a(network, kA, kB, 1000, nullptr, narrow());
  auto b = std::make_unique<Node>(network, kB, kA, 1000);
  for (std::uint64_t i = 0; i < 2 * kOfOne; ++i) b->send();
  pass(a, *b);
  b.reset();
  clock.advance(1s);
  pass(a);
  for (std::uint64_t i = 1; i <= 2 * kOfOne; ++i) {
    a.receive();
    pass(a);
    EXPECT_EQ(a.got, i);
  }
  EXPECT_EQ(a.counters().sessions_closed, 1u) << "then its session ends";
}

TEST_F(UnexpectedFullTest, MessagesToTheEndpointItselfWaitToo) {
  Node a(network, kA, kA, 1000, nullptr, narrow());
  for (std::uint64_t i = 0; i < 2 * kOfOne; ++i) a.send();
  pass(a);
  EXPECT_EQ(a.engine.unexpected_messages(), kOfOne);
  for (std::uint64_t i = 1; i <= 2 * kOfOne; ++i) {
    a.receive();
    EXPECT_EQ(a.got, i) << "at once: the application may sleep after it has posted a receive";
  }
  EXPECT_GT(a.counters().unexpected_full, 0u);
}

TEST_F(UnexpectedFullTest, ClosedUnknownSourcesAreForgottenUnlessAMessageRefersToThem) {
  Node a(network, kA, kB, 1000);
  std::uint16_t port = 0;
  const auto call = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Node unknown(network, kUnknownSource.with_port(++port), kA, 1000);
      unknown.send();
      pass(a, unknown);
    }
    pass(a);
    return a.counters().sessions_opened;
  };
  constexpr std::size_t kRemembered = 2 * kFlowsMax;
  EXPECT_EQ(call(kRemembered + 1), kRemembered) << "they are gone, but late frames of theirs may come";
  clock.advance(test::node_settings().peer_timeout);
  EXPECT_EQ(call(1), kRemembered) << "their messages are there";
  for (std::size_t i = 0; i < kRemembered; ++i) a.receive();
  EXPECT_EQ(test::take_count(a.received), kRemembered);
  clock.advance(1s);
  EXPECT_EQ(call(1), kRemembered + 1);
  Node b(network, kB, kA, 1000);
  b.send();
  pass(a, b);
  EXPECT_EQ(a.counters().sessions_opened, kRemembered + 2);
}

}  // namespace
}  // namespace cluster::engine
