#include "protocol/completion.h"

#include <utility>

namespace cluster::protocol {

void CompletionQueue::push(const Completion& completion) {
  Waker* waker = nullptr;
  {
    const std::lock_guard guard(lock_);
    entries_.push_back(completion);
    failed_ += completion.status != Status::ok;
    size_.store(entries_.size(), std::memory_order_release);
    waker = std::exchange(waker_, nullptr);
  }
  if (waker != nullptr) waker->wake();
}

bool CompletionQueue::wake_at_next(Waker& waker, std::size_t enough) {
  const std::lock_guard guard(lock_);
  if (failed_ != 0 || entries_.size() >= enough) return false;
  waker.clear();
  waker_ = &waker;
  return true;
}

void Counter::wake() {
  if (Waker* waker = waker_.exchange(nullptr)) waker->wake();
}

}  // namespace cluster::protocol
