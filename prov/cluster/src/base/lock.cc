#include "base/lock.h"

#include <algorithm>
#include <span>
#include <thread>

namespace cluster {

void BiasedLock::lock_with_others() {
  unsigned spins = 0;
  const auto wait_while = [&spins](const auto& condition) {
    while (condition()) {
      if (++spins > kSpinsBeforeYield) std::this_thread::yield();
    }
  };
  while (!take()) wait_while([this] { return taken_.load(std::memory_order_acquire); });
  end_ownership();
  wait_while([this] { return owner_inside(); });
  note_entry();
}

bool BiasedLock::try_lock_with_others() {
  if (!take()) return false;
  end_ownership();
  if (owner_inside()) {
    taken_.store(false, std::memory_order_release);
    return false;
  }
  note_entry();
  return true;
}

void BiasedLock::end_ownership() {
  if (owner_.load(std::memory_order_relaxed) == owners_.data()) return;
  owner_.store(owners_.data(), std::memory_order_relaxed);
  fence_();
}

bool BiasedLock::owner_inside() const {
  return std::ranges::any_of(owners_,
                             [](const Owner& owner) { return owner.inside.load(std::memory_order_acquire); });
}

/// Counts how often this thread has taken `taken_` in a row. Only this function makes a thread the owner. The
/// caller must hold `taken_`.
void BiasedLock::note_entry() {
  inside_as_owner_ = nullptr;
  const ThreadId self = this_thread();
  run_ = self == last_ ? run_ + 1 : 0;
  last_ = self;
  if (run_ < kEntriesToBias || fence_ == nullptr) return;
  run_ = 0;
  if (Owner* const place = place_of(self)) owner_.store(place, std::memory_order_release);
}

/// Returns the thread's element of `owners_`. On first use the thread gets a free element. Returns null if
/// all elements belong to other threads.
BiasedLock::Owner* BiasedLock::place_of(ThreadId thread) {
  for (Owner& owner : std::span(owners_).subspan(1)) {
    if (owner.thread == nullptr) owner.thread = thread;
    if (owner.thread == thread) return &owner;
  }
  return nullptr;
}

}  // namespace cluster
