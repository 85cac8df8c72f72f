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
/// newest entry of the queue is replaced by an error.
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

void Counter::wake() {
  if (Waker* waker = waker_.exchange(nullptr)) waker->wake();
}

}  // namespace cluster::protocol
