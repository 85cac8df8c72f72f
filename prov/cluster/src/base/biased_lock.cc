#include "base/biased_lock.h"

#include <thread>

namespace cluster {

void BiasedLock::lock_with_others() {
  unsigned spins = 0;
  const auto wait_while = [&spins](const std::atomic<bool>& condition) {
    while (condition.load(std::memory_order_acquire)) {
      if (++spins > kSpinsBeforeYield) std::this_thread::yield();
    }
  };
  while (!take()) wait_while(taken_);
  end_ownership();
  wait_while(inside_);
  note_entry();
}

bool BiasedLock::try_lock_with_others() {
  if (!take()) return false;
  end_ownership();
  if (inside_.load(std::memory_order_acquire)) {
    taken_.store(false, std::memory_order_release);
    return false;
  }
  note_entry();
  return true;
}

void BiasedLock::end_ownership() {
  if (owner_.load(std::memory_order_relaxed) == nullptr) return;
  owner_.store(nullptr, std::memory_order_relaxed);
  fence_();
}

/// The only place where a thread becomes the owner.
void BiasedLock::note_entry() {
  entered_as_owner_ = false;
  const ThreadId self = this_thread();
  run_ = self == last_ ? run_ + 1 : 0;
  last_ = self;
  if (run_ < kEntriesToBias || fence_ == nullptr) return;
  run_ = 0;
  owner_.store(self, std::memory_order_release);
}

}  // namespace cluster
