#include "protocol/completion.h"

#include <new>
#include <utility>

#include "base/end_of_memory.h"

namespace cluster::protocol {

void CompletionQueue::push(const Completion& completion) {
  Waker* waker = nullptr;
  {
    const std::lock_guard guard(lock_);
    next_entry() = completion;
    failed_ += completion.status != Status::ok;
    size_.store(entries_.size(), std::memory_order_release);
    waker = std::exchange(waker_, nullptr);
  }
  if (waker != nullptr) waker->wake();
}

void CompletionQueue::expect(std::size_t operations) {
  const std::lock_guard guard(lock_);
  while (entries_.free() < expected_ + operations) entries_.grow();
  expected_ += operations;
  note_capacity();
}

void CompletionQueue::leave(std::size_t operations) {
  const std::lock_guard guard(lock_);
  expected_ -= operations;
  note_capacity();
}

/// `further`: places for entries that are added at once. It throws only if there is none left at all.
void CompletionQueue::restore(std::size_t further) {
  const bool enough = entries_.free() >= expected_ + further || enough_memory_for([&] { entries_.grow(); });
  note_capacity();
  note_short(!enough);
  if (entries_.free() < further) throw std::bad_alloc();
}

void CompletionQueue::require_place() {
  const std::lock_guard guard(lock_);
  if (!short_) return;
  restore(0);
  if (short_) throw std::bad_alloc();
}

void CompletionQueue::note_short(bool is_short) {
  if (std::exchange(short_, is_short) == is_short) return;
  is_short ? ++short_queues_ : --short_queues_;
}

bool CompletionQueue::wake_at_next(Waker& waker, std::size_t enough) {
  const std::lock_guard guard(lock_);
  if (failed_ != 0 || entries_.size() >= enough) return false;
  waker.clear();
  waker_ = &waker;
  return true;
}

void CompletionPlaces::attach(CompletionQueue* transmit, CompletionQueue* receive) {
  const Queues wanted{transmit, receive != transmit ? receive : nullptr};
  if (wanted == queues_) return;
  for (CompletionQueue* const queue : wanted) {
    if (queue != nullptr) queue->expect(items_);
  }
  leave(queues_);
  queues_ = wanted;
}

void CompletionPlaces::before_growth(std::size_t items) {
  CompletionQueue* const first = queues_[0];
  CompletionQueue* const second = queues_[1];
  if (first != nullptr) first->expect(items);
  if (second != nullptr && !enough_memory_for([&] { second->expect(items); })) {
    if (first != nullptr) first->leave(items);
    throw std::bad_alloc();
  }
  items_ += items;
}

void CompletionPlaces::leave(const Queues& queues) const {
  for (CompletionQueue* const queue : queues) {
    if (queue != nullptr) queue->leave(items_);
  }
}

void Counter::wake() {
  if (Waker* waker = waker_.exchange(nullptr)) waker->wake();
}

}  // namespace cluster::protocol
