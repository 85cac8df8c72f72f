// How long a closing endpoint waits for peers that do not acknowledge its frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;

class ClosingTest : public test::EngineTest {
 protected:
  static EngineSettings settings() {
    EngineSettings made = test::node_settings();
    made.linger = 2s;
    return made;
  }
  /// The caller has a session, accesses memory that does not exist, and receives no more: this side still
  /// owes it an answer.
  void owe_answer() {
    caller.send();
    pass(*serving, caller);
    network.drop = [](const test::FakeNetwork::Packet&, const SocketAddress& hearer) {
      return hearer == kUnknownSource;
    };
    caller.write();
    pass(*serving, caller);
    ASSERT_FALSE(serving->engine.quiescent());
  }
  Duration close() {
    const Time before = network.clock().now();
    network.clock().step = 10us;
    serving.reset();
    network.clock().step = {};
    return network.clock().now() - before;
  }

  std::unique_ptr<Node> serving = std::make_unique<Node>(network, kA, kB, 1000, nullptr, settings());
  Node caller{network, kUnknownSource, kA, 1000};
};

TEST_F(ClosingTest, AMemberIsGivenTimeToAcknowledge) {
  serving->book.insert(kUnknownSource);
  owe_answer();
  const Duration took = close();
  EXPECT_GE(took, 2s);
  EXPECT_LT(took, 2100ms);
}

TEST_F(ClosingTest, AnUnknownSourceDelaysItByLess) {
  owe_answer();
  const Duration took = close();
  EXPECT_GE(took, 250ms) << "it may be a client whose frame was lost";
  EXPECT_LT(took, 350ms);
}

/// The peer has got the last message and ended, and its goodbye was lost.
TEST_F(ClosingTest, ALossThatTheApplicationCannotSeeIsNoWarning) {
  EngineSettings patient = settings();
  patient.linger = 10s;
  for (const bool awaited : {false, true}) {
    auto a = std::make_unique<Node>(network, kA, kB, 1000, nullptr, patient);
    Node b(network, kB, kA, 2000);
    a->send();
    pass(*a, b);
    network.conditions.blackout = true;
    const ConstBytes slice = as_bytes(&a->word, sizeof a->word);
    ASSERT_EQ(a->engine.send({.slices = {&slice, 1}, .length = slice.size(), .report = awaited}), Status::ok);
    const std::unique_ptr<Node::World> world = std::move(a->world_);
    network.clock().step = 1ms;
    a.reset();
    network.clock().step = {};
    network.conditions.blackout = false;
    const auto logged = [&](std::string_view words) {
      return std::ranges::count_if(
          world->log.lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
    };
    EXPECT_EQ(logged("is lost"), awaited ? 1 : 0);
    EXPECT_EQ(logged("has gone while this endpoint closes"), awaited ? 0 : 1);
  }
}

}  // namespace
}  // namespace cluster::engine
