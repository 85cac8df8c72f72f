// Which peers' kernels an endpoint asks whether their processes exist. The choice matters: any host can open
// a session and fall silent, and each question costs a descriptor.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/forged_frame.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::ForgedFrame;
using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;

constexpr int kCallers = 40;
constexpr std::size_t kOthersMax = 32;

/// Kernels that answer for every process.
class AnsweringKernels final : public link::ProcessProbe {
 public:
  explicit AnsweringKernels(std::set<std::string>& asked) : asked_(asked) {}
  bool answered_here() const override { return true; }
  Answer ask(const SocketAddress& peer) override {
    asked_.insert(peer.text());
    return Answer::exists;
  }
  void end(const SocketAddress& peer) override { asked_.erase(peer.text()); }

 private:
  std::set<std::string>& asked_;
};

class KernelProbeTest : public test::EngineTest {
 protected:
  KernelProbeTest() {
    test::NodeKind kind;
    kind.make_probe = [this] { return std::make_unique<AnsweringKernels>(asked); };
    EngineSettings settings = test::node_settings();
    settings.flows_max = 2 * kCallers;
    node = std::make_unique<Node>(network, kA, kB, 1000, nullptr, settings, kind);
  }
  static SocketAddress caller(int number) {
    return kUnknownSource.with_port(static_cast<std::uint16_t>(2000 + number));
  }
  /// Each reads forbidden memory and is silent from then on, so the answer to it stays unacknowledged.
  void call_and_be_silent() {
    for (int i = 0; i < kCallers; ++i) {
      ForgedFrame frame =
          ForgedFrame::call(caller(i), 0xF0000000u + static_cast<unsigned>(i), std::uint64_t{1} << 60);
      frame.opening->features = wire::feature::kKernelAnswers;
      frame.take_up(answer_to(frame, *node));
      frame.carry({.kind = wire::SegmentKind::read, .id = 1, .offset = 0, .total = 8, .key = 12345}, 0);
      frame.header.transmission = 1;
      inject(caller(i), kA, frame.bytes());
      pass(*node);
    }
  }
  void wait(Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(50ms)) node->engine.poll();
  }

  std::set<std::string> asked;
  std::unique_ptr<Node> node;
};

TEST_F(KernelProbeTest, OfOthersThanMembersFewAreAskedAbout) {
  call_and_be_silent();
  wait(4s);
  EXPECT_EQ(asked.size(), kOthersMax);
  wait(20s);
  EXPECT_EQ(asked.size(), kOthersMax);
  EXPECT_EQ(node->counters().sessions_closed, kCallers - kOthersMax) << "by the peer timeout";
}

TEST_F(KernelProbeTest, MembersAreAllAskedAbout) {
  for (int i = 0; i < kCallers; ++i) node->book.insert(caller(i));
  call_and_be_silent();
  wait(4s);
  EXPECT_EQ(asked.size(), static_cast<std::size_t>(kCallers));
  wait(20s);
  EXPECT_EQ(node->counters().sessions_closed, 0u);
}

/// The engine waits without end for a peer that is stopped or whose UDP is filtered; one log line says so
/// each time.
TEST_F(KernelProbeTest, SilenceForWhichAKernelVouchesIsReportedOnce) {
  test::NodeKind kind;
  kind.make_probe = [this] { return std::make_unique<AnsweringKernels>(asked); };
  Node other(network, kB, kA, 1000, nullptr, test::node_settings(), kind);
  const auto both = [&](Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end; clock.advance(10ms)) {
      node->engine.poll();
      other.engine.poll();
    }
  };
  node->send();
  both(1s);
  for (const std::size_t silence : {1u, 2u}) {
    network.conditions.blackout = true;
    node->send();
    both(9s);
    EXPECT_EQ(node->logged("has not answered for 10 s although its process exists"), silence - 1);
    EXPECT_TRUE(node->peer().flow->kernel_vouches);
    both(30s);
    EXPECT_EQ(node->logged("has not answered for 10 s although its process exists"), silence);
    EXPECT_EQ(node->logged("answers again"), silence - 1);
    network.conditions.blackout = false;
    both(3s);
    EXPECT_EQ(node->logged("answers again"), silence);
    EXPECT_FALSE(node->peer().flow->kernel_vouches);
  }
}

}  // namespace
}  // namespace cluster::engine
