// A spin lock for doors that are nearly always open: one uncontended exchange to enter, a store to
// leave. Held for the length of one library call; waiters yield so that an oversubscribed machine
// gets on.
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
