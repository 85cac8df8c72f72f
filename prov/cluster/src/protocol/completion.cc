#include "protocol/completion.h"

#include <utility>

#include "base/end_of_memory.h"

namespace cluster::protocol {

void CompletionQueue::push(const Completion& completion) {
  Waker* waker = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (has_place()) entries_.push_within() = completion;
    size_.store(entries_.size(), std::memory_order_release);
    waker = std::exchange(waker_, nullptr);
  }
  if (waker != nullptr) waker->wake();
}

/// Called when the queue is full. Returns false if there is no memory for more entries. In this case the
/// function replaces the newest entry of the queue by an error.
bool CompletionQueue::make_place() {
  if (enough_memory_for([&] { entries_.grow(); })) return true;
  entries_[entries_.size() - 1] = {.status = Status::overrun};
  return false;
}

bool CompletionQueue::wake_at_next(Waker& waker) {
  const std::lock_guard guard(lock_);
  if (!entries_.empty()) return false;
  waker.clear();
  waker_ = &waker;
  return true;
}

/// While `observed_` is false here, another thread that changes the counter may skip notify(). By then that
/// thread has changed the counter. So the waker and the watch, which this function calls afterwards, see the
/// change.
void Counter::notify() {
  observed_.store(false);
  Waker* const waker = waker_.exchange(nullptr);
  CounterWatch* const watch = watch_.load();
  if (watch != nullptr) observed_.store(true);
  if (waker != nullptr) waker->wake();
  if (watch != nullptr) watch->counter_changed();
}

}  // namespace cluster::protocol
