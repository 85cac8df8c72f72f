// What the progress thread does for an endpoint with manual progress whose application sleeps.
#include "engine/background_runner.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "os/descriptor.h"
#include "support/fake_environment.h"
#include "support/node.h"
#include "support/quiet_local.h"

namespace cluster::engine {
namespace {

constexpr Duration kUntilReadable = os::NextWake::kUntilReadable;

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

/// For an endpoint that only processes of its node reach; the test rings its doorbell.
class BellListener final : public test::QuietListener {
 public:
  explicit BellListener(int bell) : bell_(bell) {}
  int descriptor() const override { return never_.number(); }
  int doorbell() const override { return bell_; }
  void clear_doorbell() override {
    eventfd_t rings = 0;
    eventfd_read(bell_, &rings);
  }

 private:
  int bell_;
  os::Descriptor never_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

class BackgroundRunnerTest : public ::testing::Test {
 protected:
  BackgroundRunnerTest() { engine.attach(book, {.tx_queue = &queue, .rx_queue = &queue}); }
  /// The first run that does not come again by time, after how many others.
  unsigned runs_until_quiet() {
    for (unsigned runs = 0; runs < 10 * BackgroundRunner::kQuietRuns; ++runs) {
      const os::NextWake next = engine.run_in_background();
      if (next.after != kUntilReadable) continue;
      EXPECT_EQ(next.descriptor, engine.descriptor());
      return runs;
    }
    return ~0u;
  }

  test::FakeClock clock;
  test::FakeRandom random{1};
  test::FakeLog log;
  Counters counters;
  os::Descriptor bell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  AddressTable book;
  protocol::CompletionQueue queue;
  Engine engine{EngineParts{.environment = {clock, random, log, counters},
                            .settings = test::node_settings(),
                            .name = test::kA,
                            .epoch = 1000,
                            .link = nullptr,
                            .local_listener = std::make_unique<BellListener>(bell.number()),
                            .resources = nullptr}};
};

TEST_F(BackgroundRunnerTest, AProcessThatWaitsIsLeftAloneUntilSomethingComes) {
  ASSERT_TRUE(engine.arm());
  EXPECT_GE(runs_until_quiet(), BackgroundRunner::kQuietRuns - 1);
  EXPECT_EQ(engine.run_in_background().after, kUntilReadable);
  EXPECT_FALSE(is_readable(engine.descriptor()));
  ASSERT_EQ(eventfd_write(bell.number(), 1), 0);
  EXPECT_TRUE(is_readable(engine.descriptor()));
  EXPECT_NE(engine.run_in_background().after, kUntilReadable)
      << "the application may have turned to something else";
}

TEST_F(BackgroundRunnerTest, ADeadlineOfAThreadThatSleepsAgainDisturbsNoMore) {
  ASSERT_TRUE(engine.arm());
  ASSERT_NE(runs_until_quiet(), ~0u);
  engine.poll();
  EXPECT_NE(engine.run_in_background().after, kUntilReadable) << "it is awake";
  ASSERT_TRUE(engine.arm());
  ASSERT_NE(runs_until_quiet(), ~0u);
  engine.poll();
  ASSERT_TRUE(engine.arm());
  EXPECT_EQ(engine.run_in_background().after, kUntilReadable) << "it has gone to sleep again";
}

TEST_F(BackgroundRunnerTest, AThreadThatWakesForEachMessageIsLeftAlone) {
  for (unsigned runs = 0; runs < 4 * BackgroundRunner::kQuietRuns; ++runs) {
    for (unsigned messages = 0; messages < 10; ++messages) {
      engine.poll();
      ASSERT_TRUE(engine.arm());
    }
    EXPECT_NE(engine.run_in_background().after, kUntilReadable)
        << "each of them would wake the progress thread as well";
  }
}

TEST_F(BackgroundRunnerTest, AnApplicationThatComputesIsServedByTime) {
  engine.poll();
  EXPECT_EQ(runs_until_quiet(), ~0u) << "nothing would wake the thread";
}

/// A hundred progress threads would take the processors for which their applications wait.
TEST_F(BackgroundRunnerTest, ARunThatComesLateIsFollowedByALongerRest) {
  engine.poll();
  const auto rest_after = [&](Duration late) {
    const Duration asked = engine.run_in_background().after;
    clock.advance(asked + late);
    return engine.run_in_background().after;
  };
  const Duration usual = rest_after(0ms);
  EXPECT_LE(usual, BackgroundRunner::kIdle);
  EXPECT_EQ(rest_after(500us), usual);
  EXPECT_GE(rest_after(15ms), 40ms);
  EXPECT_LE(rest_after(10s), 50ms) << "peers are served all the same";
  engine.poll();
  EXPECT_GE(rest_after(15ms), 40ms) << "an application that polls waits for the processor as well";
}

/// Known from the runs alone, which come anyway: calls note nothing.
TEST_F(BackgroundRunnerTest, HowLongTheApplicationHasMadeNoCall) {
  const auto away = [&] { return engine.stats()->application_away; };
  const auto run_for = [&](Duration time) {
    for (const Time end = clock.now() + time; clock.now() < end;)
      clock.advance(engine.run_in_background().after);
  };
  EXPECT_EQ(away(), 0s) << "nothing is known yet";
  engine.poll();
  run_for(3s);
  EXPECT_GE(away(), 2900ms);
  EXPECT_LE(away(), 3s);
  engine.poll();
  EXPECT_EQ(away(), 0s) << "no run has seen the call yet";
  run_for(1s);
  EXPECT_LE(away(), 1s);
  ASSERT_TRUE(engine.arm());
  run_for(20ms);
  EXPECT_EQ(away(), 0s) << "a thread sleeps in a call";
}

TEST_F(BackgroundRunnerTest, AnApplicationThatPollsNowAndThenIsNotAsleep) {
  ASSERT_TRUE(engine.arm());
  for (unsigned i = 0; i < 4 * BackgroundRunner::kQuietRuns; ++i) {
    if (i % (BackgroundRunner::kQuietRuns / 2) == 0) engine.poll();
    EXPECT_NE(engine.run_in_background().after, kUntilReadable) << i;
  }
}

}  // namespace
}  // namespace cluster::engine
