#include "protocol/completion.h"

#include <new>
#include <utility>

namespace cluster::protocol {

void CompletionQueue::push(const Completion& completion) {
  Waker* waker = nullptr;
  {
    const std::lock_guard guard(lock_);
    next_entry() = completion;
    size_.store(entries_.size(), std::memory_order_release);
    waker = std::exchange(waker_, nullptr);
  }
  if (waker != nullptr) waker->wake();
}

/// Throws only if there is no place left at all.
void CompletionQueue::grow(std::size_t ahead) {
  try {
    while (entries_.free() <= ahead) entries_.grow();
    grow_from_ = entries_.size() + entries_.free() - kAhead;
    set_starved(false);
  } catch (const std::bad_alloc&) {
    if (entries_.free() == 0) throw;
    set_starved(true);
  }
}

void CompletionQueue::set_starved(bool starved) {
  if (std::exchange(starved_, starved) == starved) return;
  starved ? ++starved_queues_ : --starved_queues_;
}

bool CompletionQueue::has_memory() {
  const std::lock_guard guard(lock_);
  if (!starved_) return true;
  try {
    grow(kAhead);
  } catch (const std::bad_alloc&) {
  }
  return !starved_;
}

bool CompletionQueue::has_memory_for(std::size_t count) {
  const std::lock_guard guard(lock_);
  if (entries_.free() >= count + kAhead) return true;
  try {
    grow(count + kAhead);
  } catch (const std::bad_alloc&) {
    set_starved(true);
  }
  return !starved_;
}

bool CompletionQueue::wake_at_next(Waker& waker) {
  const std::lock_guard guard(lock_);
  if (!entries_.empty()) return false;
  waker.clear();
  waker_ = &waker;
  return true;
}

void Counter::wake() {
  if (Waker* waker = waker_.exchange(nullptr)) waker->wake();
}

}  // namespace cluster::protocol
