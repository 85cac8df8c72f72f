// First frames of a session between nodes with different MTUs.
#include <gtest/gtest.h>

#include "support/node.h"

namespace cluster::engine {
namespace {

using test::Node;
using test::node_name;

class MtuNoticeTest : public ::testing::Test {
 protected:
  void exchange(Node& a, Node& b) {
    for (int i = 0; i < 5; ++i) {
      a.send();
      b.send();
      for (int turn = 0; turn < 100; ++turn) {
        clock.advance(5us);
        a.engine.poll();
        b.engine.poll();
      }
    }
    EXPECT_GE(b.engine.unexpected_messages(), 5u);
  }
  static std::size_t warnings(const Node& node) {
    std::size_t count = 0;
    for (const std::string& line : node.log().lines) count += line.find("MTU") != std::string::npos ? 1 : 0;
    return count;
  }

  test::FakeClock clock;
  test::FakeNetwork network{clock, 1};
};

TEST_F(MtuNoticeTest, DifferentMtusAreSaidOnceAndTheSmallerIsUsed) {
  Node a(network, node_name(1), node_name(2), 1000, nullptr, test::node_settings(), {.frame_max = 8972});
  Node b(network, node_name(2), node_name(1), 1000, nullptr, test::node_settings(), {.frame_max = 1472});
  exchange(a, b);
  EXPECT_EQ(a.peer().flow->frame_max, 1472u);
  EXPECT_EQ(b.peer().flow->frame_max, 1472u);
  for (const Node* node : {&a, &b}) {
    ASSERT_EQ(warnings(*node), 1u);
    EXPECT_NE(node->log().lines.back().find("1500"), std::string::npos) << node->log().lines.back();
    EXPECT_NE(node->log().lines.back().find("9000"), std::string::npos) << node->log().lines.back();
  }
  Node c(network, node_name(3), node_name(1), 1000, nullptr, test::node_settings(), {.frame_max = 1472});
  exchange(c, a);
  EXPECT_EQ(warnings(a), 1u) << "not once per peer";
}

TEST_F(MtuNoticeTest, EqualMtusAreNoNews) {
  for (const std::size_t frame_max : {std::size_t{1472}, std::size_t{65000}}) {
    Node a(network, node_name(1), node_name(2), 1000, nullptr, test::node_settings(),
           {.frame_max = frame_max});
    Node b(network, node_name(2), node_name(1), 1000, nullptr, test::node_settings(),
           {.frame_max = frame_max});
    exchange(a, b);
    EXPECT_EQ(warnings(a) + warnings(b), 0u);
  }
}

}  // namespace
}  // namespace cluster::engine
