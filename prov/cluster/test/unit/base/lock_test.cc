// The spin lock: mutual exclusion and visibility under several threads.
#include "base/lock.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace cluster {
namespace {

TEST(SpinLock, TryLockTellsTheTruth) {
  SpinLock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(SpinLock, ExcludesUnderThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5000;
  SpinLock lock;
  // Plain on purpose: the lock alone must make them right, and ThreadSanitizer watches.
  std::uint64_t count = 0;
  std::uint64_t mirror = 0;
  bool torn = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::lock_guard guard(lock);
        torn = torn || count != mirror;
        ++count;
        ++mirror;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(torn);
  EXPECT_EQ(count, std::uint64_t{kThreads} * kRounds);
}

TEST(SpinLock, WaiterGetsInAfterALongHold) {
  SpinLock lock;
  lock.lock();
  std::atomic<bool> trying{false};
  bool entered = false;
  std::thread waiter([&] {
    trying = true;
    const std::lock_guard guard(lock);
    entered = true;
  });
  while (!trying) std::this_thread::yield();
  for (int i = 0; i < 5000; ++i) std::this_thread::yield();  // long enough to pass its spinning phase
  EXPECT_FALSE(entered);
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace cluster
