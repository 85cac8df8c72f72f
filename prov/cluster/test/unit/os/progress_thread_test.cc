#include "os/progress_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "conformance/link_station.h"
#include "os/wait_set.h"

namespace cluster::os {
namespace {

using test::eventually;

std::shared_ptr<void> start(std::function<NextWake()> run) {
  int error = 0;
  std::shared_ptr<void> client = start_progress_client(std::move(run), error);
  EXPECT_TRUE(client) << error;
  return client;
}

TEST(ProgressThread, RunsAClientAtOnceAndAgainWhenItsTimeHasCome) {
  std::atomic<int> runs{0};
  const auto client = start([&runs] {
    ++runs;
    return NextWake{1ms};
  });
  EXPECT_TRUE(eventually([&runs] { return runs >= 3; }));
}

TEST(ProgressThread, RunsAClientThatIsHurriedBeforeItsTime) {
  std::atomic<int> runs{0};
  const auto client = start([&runs] {
    ++runs;
    return NextWake{1h};
  });
  for (int wanted = 1; wanted <= 3; ++wanted) {
    ASSERT_TRUE(eventually([&] { return runs >= wanted; }));
    hurry_progress_client(client.get());
  }
}

TEST(ProgressThread, RunsAClientWhenItsDescriptorIsReadable) {
  const std::unique_ptr<Signal> signal = Signal::open();
  std::atomic<int> runs{0};
  const auto client = start([&] {
    signal->lower();
    ++runs;
    return NextWake{NextWake::kUntilReadable, signal->descriptor()};
  });
  for (int wanted = 1; wanted <= 3; ++wanted) {
    ASSERT_TRUE(eventually([&] { return runs >= wanted; }));
    signal->raise();
  }
}

TEST(ProgressThread, FollowsAChangeOfDescriptor) {
  const std::unique_ptr<Signal> first = Signal::open();
  const std::unique_ptr<Signal> second = Signal::open();
  std::atomic<int> runs{0};
  const auto client = start([&] {
    first->lower();
    second->lower();
    ++runs;
    return NextWake{NextWake::kUntilReadable, runs == 1 ? first->descriptor() : second->descriptor()};
  });
  ASSERT_TRUE(eventually([&runs] { return runs == 1; }));
  first->raise();
  ASSERT_TRUE(eventually([&runs] { return runs == 2; }));
  second->raise();
  EXPECT_TRUE(eventually([&runs] { return runs == 3; }));
}

TEST(ProgressThread, DroppingTheHandleWaitsForTheCallInProgress) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> inside{false};
    std::atomic<bool> seen{false};
    auto client = start([&] {
      inside = true;
      seen = true;
      std::this_thread::yield();
      inside = false;
      return NextWake{Duration::zero()};
    });
    ASSERT_TRUE(eventually([&seen] { return seen.load(); }));
    client.reset();
    EXPECT_FALSE(inside);
  }
}

TEST(ProgressThread, AClientThatCannotHaveItsLockKeepsNoneWaiting) {
  std::mutex engine;
  const std::unique_lock computing(engine);
  std::atomic<int> refused{0};
  const auto blocked = start([&] {
    const std::unique_lock lock(engine, std::try_to_lock);
    if (!lock.owns_lock()) ++refused;
    return NextWake{200us};
  });
  ASSERT_TRUE(eventually([&refused] { return refused >= 1; }));
  std::atomic<int> runs{0};
  const auto client = start([&runs] {
    ++runs;
    return NextWake{1ms};
  });
  EXPECT_TRUE(eventually([&runs] { return runs >= 3; }));
}

}  // namespace
}  // namespace cluster::os
