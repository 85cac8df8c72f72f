// How long a closing endpoint waits for peers that do not acknowledge its frames.
#include <gtest/gtest.h>

#include <memory>

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

}  // namespace
}  // namespace cluster::engine
