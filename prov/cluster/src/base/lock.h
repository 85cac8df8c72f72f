// A spin lock for data that is rarely contended: one exchange to lock, a store to unlock. Held for at most
// one library call. Waiters yield, so that on an oversubscribed machine the holder gets to run.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace cluster {

class SpinLock {
 public:
  void lock() {
    for (unsigned spins = 0; !try_lock(); ++spins) {
      while (taken_.load(std::memory_order_relaxed)) {
        if (++spins > kSpinsBeforeYield) std::this_thread::yield();
      }
    }
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr unsigned kSpinsBeforeYield = 1000;
  std::atomic<bool> taken_{false};
};

}  // namespace cluster
