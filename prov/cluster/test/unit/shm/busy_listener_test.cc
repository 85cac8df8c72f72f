// A peer of this node whose connection queue is full, which any user of the node can cause. The engine
// retries for a while and then uses the network.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "support/node.h"
#include "support/quiet_local.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::Node;

struct Queue {
  bool full = true;
  int attempts = 0;
  bool comes = false;  ///< a ring of kB
};

class BusyListener final : public test::QuietListener {
 public:
  explicit BusyListener(Queue& queue) : queue_(queue) {}
  shm::Connection connect(const SocketAddress&) override {
    ++queue_.attempts;
    return {nullptr, "as the test says", queue_.full};
  }
  void accept(std::vector<std::unique_ptr<shm::Inbox>>& arrivals) override {
    if (std::exchange(queue_.comes, false)) arrivals.push_back(std::make_unique<test::QuietInbox>(kB));
  }

 private:
  Queue& queue_;
};

class BusyListenerTest : public test::EngineTest {
 protected:
  Status post(Node& node) {
    node.word = 1;
    const Bytes slice = as_bytes(&node.word, sizeof node.word);
    const ConstBytes part = slice;
    return node.engine.send({.slices = {&part, 1}, .length = sizeof node.word});
  }
  Queue queue;
};

TEST_F(BusyListenerTest, IsTriedAgainUntilItAnswers) {
  Node a(network, kA, kB, 1000, std::make_unique<BusyListener>(queue));
  EXPECT_EQ(post(a), Status::again);
  EXPECT_EQ(post(a), Status::again);
  EXPECT_EQ(queue.attempts, 1) << "not each time: a loop of calls is no loop of connections";
  clock.advance(10ms);
  EXPECT_EQ(post(a), Status::again);
  EXPECT_EQ(queue.attempts, 2);
  queue.full = false;
  clock.advance(10ms);
  EXPECT_EQ(post(a), Status::ok) << "over the network, since it refuses";
}

TEST_F(BusyListenerTest, IsGivenUpAfterASecond) {
  Node a(network, kA, kB, 1000, std::make_unique<BusyListener>(queue));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(post(a), Status::again) << i;
    clock.advance(20ms);
  }
  EXPECT_EQ(post(a), Status::ok);
}

TEST_F(BusyListenerTest, AnswersToARingThatHasComeWaitForIt) {
  Node a(network, kA, kB, 1000, std::make_unique<BusyListener>(queue));
  queue.comes = true;
  pass(a);
  EXPECT_EQ(a.counters().frames_sent, 0u);
  for (int i = 0; i < 110; ++i) {
    clock.advance(10ms);
    pass(a);
  }
  EXPECT_EQ(post(a), Status::ok) << "it has a carrier: the network";
}

}  // namespace
}  // namespace cluster::engine
