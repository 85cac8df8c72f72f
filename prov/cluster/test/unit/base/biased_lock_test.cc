// The lock with an owner: mutual exclusion and visibility while ownership comes and goes.
#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "base/lock.h"
#include "os/process_fence.h"

namespace cluster {
namespace {

int fences = 0;

void count_fence() {
  ++fences;
  if (const ThreadFence fence = os::thread_fence()) fence();
}

void take_often(BiasedLock& lock, unsigned times) {
  for (unsigned i = 0; i < times; ++i) const std::lock_guard guard(lock);
}

class BiasedLockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (os::thread_fence() == nullptr) GTEST_SKIP() << "no fences for all threads here";
    fences = 0;
  }
};

TEST_F(BiasedLockTest, TryLockTellsTheTruth) {
  BiasedLock lock(count_fence);
  for (const bool owned : {false, true}) {
    if (owned) take_often(lock, 2 * BiasedLock::kEntriesToBias);
    ASSERT_TRUE(lock.try_lock());
    std::thread([&] { EXPECT_FALSE(lock.try_lock()) << owned; }).join();
    lock.unlock();
    std::thread([&] {
      EXPECT_TRUE(lock.try_lock()) << owned;
      lock.unlock();
    }).join();
  }
}

TEST_F(BiasedLockTest, OnlyAThreadThatTakesItFromItsOwnerFences) {
  BiasedLock lock(count_fence);
  take_often(lock, 10 * BiasedLock::kEntriesToBias);
  EXPECT_EQ(fences, 0);
  std::thread([&] { take_often(lock, 10); }).join();
  EXPECT_EQ(fences, 1);
  take_often(lock, 10);
  EXPECT_EQ(fences, 1) << "it has no owner";
}

TEST_F(BiasedLockTest, AThreadThatWaitsForTheOwnerGetsIn) {
  BiasedLock lock(count_fence);
  take_often(lock, 2 * BiasedLock::kEntriesToBias);
  lock.lock();
  bool entered = false;
  std::atomic<bool> trying{false};
  std::thread waiter([&] {
    trying = true;
    const std::lock_guard guard(lock);
    entered = true;
  });
  while (!trying) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  EXPECT_FALSE(entered);
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(entered);
}

std::atomic<bool> fencing{false};
std::atomic<bool> owner_tried{false};

/// Lets the owner try the lock while another thread is in its fence.
void fence_while_the_owner_tries() {
  fencing = true;
  while (!owner_tried) std::this_thread::yield();
}

/// Behind the fence the owner must notice that it no longer owns the lock.
TEST(BiasedLock, ItsOwnershipHasEndedBeforeTheFence) {
  BiasedLock lock(fence_while_the_owner_tries);
  take_often(lock, 2 * BiasedLock::kEntriesToBias);
  std::thread guest([&] { take_often(lock, 1); });
  while (!fencing) std::this_thread::yield();
  const bool entered = lock.try_lock();
  if (entered) lock.unlock();
  EXPECT_FALSE(entered) << "the other thread has taken it";
  owner_tried = true;
  guest.join();
}

/// Interrupts a thread wherever it is and holds it there.
std::atomic<bool> hold{false};
std::atomic<bool> held{false};

void be_held(int) {
  held = true;
  while (hold) {
  }
  held = false;
}

/// Holds an owner before any of its instructions while another thread becomes the owner and stays inside.
/// What the first one still does as an owner must not open the lock.
TEST_F(BiasedLockTest, AFormerOwnerThatWakesUpLateDoesNotOpenIt) {
  struct sigaction before {
  }, action{};
  action.sa_handler = be_held;
  ASSERT_EQ(sigaction(SIGUSR2, &action, &before), 0);
  BiasedLock lock(os::thread_fence());
  std::atomic<bool> done{false}, alone{false}, broken{false};
  std::atomic<unsigned> tries{0};
  std::thread former([&] {
    while (!done) {
      if (lock.try_lock()) {
        if (alone) broken = true;
        lock.unlock();
      }
      ++tries;
    }
  });
  for (int round = 0; round < 100 && !broken; ++round) {
    const unsigned first = tries;
    while (tries - first < 2 * BiasedLock::kEntriesToBias) std::this_thread::yield();
    hold = true;
    ASSERT_EQ(pthread_kill(former.native_handle(), SIGUSR2), 0);
    while (!held) std::this_thread::yield();
    unsigned entries = 0;
    while (entries < 2 * BiasedLock::kEntriesToBias && lock.try_lock()) {
      if (++entries < 2 * BiasedLock::kEntriesToBias) lock.unlock();
    }
    const bool inside = entries == 2 * BiasedLock::kEntriesToBias;
    alone = inside;
    hold = false;
    const unsigned woken = tries;
    while (held || (inside && tries - woken < 3)) std::this_thread::yield();
    alone = false;
    if (inside) lock.unlock();
  }
  done = true;
  former.join();
  EXPECT_FALSE(broken);
  sigaction(SIGUSR2, &before, nullptr);
}

/// More threads win it than it has places for: the last ones use it as a spin lock.
TEST_F(BiasedLockTest, HasSomeOwnersAndServesAll) {
  BiasedLock lock(count_fence);
  constexpr int kThreads = BiasedLock::kOwners + 2;
  std::atomic<int> turn{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      while (turn != thread) std::this_thread::yield();
      take_often(lock, 2 * BiasedLock::kEntriesToBias);
      ++turn;
      while (turn < kThreads) std::this_thread::yield();  // alive: its identity is not given to another one
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(fences, int{BiasedLock::kOwners}) << "each of them is followed by another thread";
}

/// One thread locks all the time, others now and then, so threads win and lose ownership again and again.
void contend(ThreadFence fence, int guests, unsigned visits) {
  BiasedLock lock(fence);
  // Plain on purpose: the lock alone must make them right, and ThreadSanitizer watches.
  std::uint64_t count = 0, mirror = 0, tried = 0;
  bool torn = false;
  const auto enter = [&] {
    torn = torn || count != mirror;
    ++count;
    ++mirror;
  };
  std::atomic<int> left{guests};
  std::vector<std::thread> threads;
  for (int guest = 0; guest < guests; ++guest) {
    threads.emplace_back([&, guest] {
      for (unsigned visit = 0; visit < visits; ++visit) {
        if (guest % 2 == 0) {
          const std::lock_guard guard(lock);
          enter();
        } else if (lock.try_lock()) {
          enter();
          ++tried;
          lock.unlock();
        }
        if (visit % 8 == 7) std::this_thread::yield();
      }
      --left;
    });
  }
  std::uint64_t own = 0;
  while (left > 0 || own < 4 * BiasedLock::kEntriesToBias) {
    const std::lock_guard guard(lock);
    enter();
    ++own;
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(torn);
  EXPECT_EQ(count, mirror);
  EXPECT_EQ(count, own + tried + std::uint64_t{static_cast<unsigned>(guests + 1) / 2} * visits);
}

TEST_F(BiasedLockTest, ExcludesOneGuest) { contend(os::thread_fence(), 1, 20'000); }
TEST_F(BiasedLockTest, ExcludesManyGuests) { contend(os::thread_fence(), 4, 2'000); }

TEST(BiasedLock, IsASpinLockWithoutAFence) { contend(nullptr, 3, 2'000); }

}  // namespace
}  // namespace cluster
