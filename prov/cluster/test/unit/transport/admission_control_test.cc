// Rings of this node under a forged name, and too many of unknown sources.
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
using test::kFlowsMax;
using test::kUnknownSource;
using test::Node;

using AdmissionControlTest = test::EngineTest;

/// A peer of this node that says nothing.
class SilentInbox final : public test::QuietInbox {
 public:
  SilentInbox(const SocketAddress& peer, std::uint64_t epoch, const bool& gone)
      : QuietInbox(peer, epoch), gone_(gone) {
    ++alive;
  }
  ~SilentInbox() override { --alive; }
  bool peer_gone() override { return gone_; }

  static inline int alive = 0;

 private:
  const bool& gone_;
};

/// Accepts the rings that the test queues.
class HostOfCallers final : public test::QuietListener {
 public:
  using Queue = std::vector<std::unique_ptr<shm::Inbox>>;
  explicit HostOfCallers(Queue& queue) : queue_(queue) {}
  void accept(Queue& arrivals) override {
    for (auto& inbox : queue_) arrivals.push_back(std::move(inbox));
    queue_.clear();
  }

 private:
  Queue& queue_;
};

TEST_F(AdmissionControlTest, ASecondRingOfALivingLocalPeerIsRefused) {
  HostOfCallers::Queue callers;
  bool gone = false;
  Node a(network, kA, kB, 1000, std::make_unique<HostOfCallers>(callers));
  callers.push_back(std::make_unique<SilentInbox>(kB, 1, gone));
  pass(a);
  callers.push_back(std::make_unique<SilentInbox>(kB, 2, gone));
  pass(a);
  EXPECT_EQ(SilentInbox::alive, 1);
  EXPECT_EQ(a.counters().shm_refused, 1u);
  EXPECT_EQ(a.logged("another process has this address"), 1u);
  callers.push_back(std::make_unique<SilentInbox>(kB, 2, gone));
  pass(a);
  EXPECT_EQ(a.counters().shm_refused, 2u);
  EXPECT_EQ(a.logged("refused"), 1u) << "once";
  gone = true;
  bool present = false;
  callers.push_back(std::make_unique<SilentInbox>(kB, 3, present));
  pass(a);
  EXPECT_EQ(SilentInbox::alive, 1) << "the next incarnation is accepted once the one before has ended";
  EXPECT_EQ(a.counters().shm_refused, 2u);
}

TEST_F(AdmissionControlTest, UnknownLocalSourcesFindALimitThatKnownPeersDoNot) {
  HostOfCallers::Queue callers;
  const bool gone = false;
  Node a(network, kA, kB, 1000, std::make_unique<HostOfCallers>(callers));
  for (std::uint16_t port = 1; port <= kFlowsMax + 2; ++port) {
    callers.push_back(std::make_unique<SilentInbox>(kUnknownSource.with_port(port), 1, gone));
  }
  callers.push_back(std::make_unique<SilentInbox>(kB, 1, gone));
  pass(a);
  EXPECT_EQ(SilentInbox::alive, static_cast<int>(kFlowsMax) + 1);
  EXPECT_EQ(a.counters().shm_refused, 2u);
  EXPECT_EQ(a.logged("too many peers"), 1u);
}

}  // namespace
}  // namespace cluster::engine
