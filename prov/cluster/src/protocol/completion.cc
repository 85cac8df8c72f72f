#include "protocol/completion.h"

namespace cluster::protocol {

void CompletionQueue::push(const Completion& completion) {
  const std::lock_guard guard(lock_);
  entries_.push_back(completion);
  size_.store(entries_.size(), std::memory_order_release);
}

}  // namespace cluster::protocol
