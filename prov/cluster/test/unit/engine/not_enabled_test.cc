// An endpoint that has been asked for its name, but is not enabled yet: peers may already call it, and so may unknown sources.
#include <gtest/gtest.h>

#include "engine/background_runner.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

struct NotEnabledTest : test::EngineTest {
  void pass_in_background() {
    for (int i = 0; i < 200; ++i) {
      clock.advance(5us);
      a.engine.poll();
      EXPECT_EQ(b.engine.run_in_background().after, BackgroundRunner::kIdle);
    }
  }

  test::Node a{network, test::kA, test::kB, 1000};
  test::Node b{network, test::kB, test::kA, 2000, nullptr, test::node_settings(), {.enabled = false}};
};

TEST_F(NotEnabledTest, WhatComesWaitsUntilItIs) {
  a.send();
  pass_in_background();
  EXPECT_EQ(b.counters().frames_received, 0u);
  b.enable();
  b.receive();
  pass(a, b);
  EXPECT_EQ(b.got, a.word);
}

TEST_F(NotEnabledTest, TheSameWithAProgressThreadThatServes) {
  b.engine.enable_auto_progress();
  a.send();
  pass_in_background();
  EXPECT_EQ(b.counters().frames_received, 0u);
  b.enable();
  b.receive();
  pass(a, b);
  EXPECT_EQ(b.got, a.word);
}

TEST_F(NotEnabledTest, ItIsClosedWithFramesInItsSocket) {
  a.send();
  a.engine.poll();
  {
    test::Node c{network, test::kUnknownSource,  test::kA,          3000,
                 nullptr, test::node_settings(), {.enabled = false}};
    inject(test::kA, test::kUnknownSource, as_bytes(&a.word, sizeof a.word));
    clock.advance(1ms);
  }
  pass_in_background();
  EXPECT_EQ(b.counters().frames_received, 0u);
}

/// Nothing could wake it, and it may not take what arrives.
TEST(NotEnabled, NoThreadSleepsAtIt) {
  test::FakeClock clock;
  test::Node::World world(clock, 1);
  Engine engine(EngineParts{.environment = world.environment(),
                            .settings = test::node_settings(),
                            .name = test::kA,
                            .epoch = 1000,
                            .link = nullptr,
                            .local_listener = nullptr,
                            .resources = nullptr});
  EXPECT_FALSE(engine.arm());
  AddressTable book;
  engine.attach(book, {});
  EXPECT_TRUE(engine.arm());
}

}  // namespace
}  // namespace cluster::engine
