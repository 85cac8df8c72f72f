// Peers of the same node that lie about their name, or are too many.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::kFlowsMax;
using test::kStranger;
using test::Node;

using LocalLimitTest = test::EngineTest;

/// A peer of this node that says nothing.
class SilentInbox final : public shm::Inbox {
 public:
  SilentInbox(const SocketAddress& peer, std::uint64_t epoch, const bool& gone)
      : peer_(peer), epoch_(epoch), gone_(gone) {
    ++alive;
  }
  ~SilentInbox() override { --alive; }
  const SocketAddress& peer() const override { return peer_; }
  std::uint64_t peer_epoch() const override { return epoch_; }
  bool look(shm::Arrival&) override { return false; }
  void take() override {}
  bool broken() const override { return false; }
  protocol::ForeignMemory* memory() override { return nullptr; }
  bool peer_gone() override { return gone_; }
  int descriptor() const override { return -1; }
  std::size_t footprint() const override { return 0; }
  bool ask() override { return false; }
  void hush() override {}

  static inline int alive = 0;

 private:
  SocketAddress peer_;
  std::uint64_t epoch_;
  const bool& gone_;
};

/// Lets in whoever the test says.
class HostOfMany final : public shm::Host {
 public:
  using Queue = std::vector<std::unique_ptr<shm::Inbox>>;
  explicit HostOfMany(Queue& queue) : queue_(queue) {}
  shm::Connection connect(const SocketAddress&) override { return {nullptr, "nobody"}; }
  void accept(Queue& arrivals) override {
    for (auto& inbox : queue_) arrivals.push_back(std::move(inbox));
    queue_.clear();
  }
  int descriptor() const override { return -1; }
  bool expecting() const override { return false; }

 private:
  Queue& queue_;
};

TEST_F(LocalLimitTest, WhoCallsItselfLikeALivingLocalPeerIsRefused) {
  HostOfMany::Queue callers;
  bool gone = false;
  Node a(network, kA, kB, 1000, std::make_unique<HostOfMany>(callers));
  callers.push_back(std::make_unique<SilentInbox>(kB, 1, gone));
  pass(a);
  callers.push_back(std::make_unique<SilentInbox>(kB, 2, gone));
  pass(a);
  EXPECT_EQ(SilentInbox::alive, 1);
  EXPECT_EQ(a.counters().shm_refused, 1u);
  gone = true;
  bool present = false;
  callers.push_back(std::make_unique<SilentInbox>(kB, 3, present));
  pass(a);
  EXPECT_EQ(SilentInbox::alive, 1) << "the next life is let in once the one before is over";
  EXPECT_EQ(a.counters().shm_refused, 1u);
}

TEST_F(LocalLimitTest, LocalStrangersFindALimitThatExpectedPeersDoNot) {
  HostOfMany::Queue callers;
  const bool gone = false;
  Node a(network, kA, kB, 1000, std::make_unique<HostOfMany>(callers));
  for (std::uint16_t port = 1; port <= kFlowsMax + 2; ++port) {
    callers.push_back(std::make_unique<SilentInbox>(kStranger.with_port(port), 1, gone));
  }
  callers.push_back(std::make_unique<SilentInbox>(kB, 1, gone));
  pass(a);
  EXPECT_EQ(SilentInbox::alive, static_cast<int>(kFlowsMax) + 1);
  EXPECT_EQ(a.counters().shm_refused, 2u);
}

}  // namespace
}  // namespace cluster::engine
