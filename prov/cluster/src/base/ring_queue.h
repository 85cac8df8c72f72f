// A queue in one block of memory. If the block is full, the queue allocates a block of twice the size. Once
// the block is large enough, the queue allocates nothing more. The queue has no limit, so its owner must
// limit the number of items.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace cluster {

template <typename Item>
class RingQueue {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  /// Returns how many items can be added before the queue must grow.
  std::size_t free() const { return capacity_ - size(); }
  /// Returns the size of the queue's memory in bytes.
  std::size_t footprint() const { return capacity_ * sizeof(Item); }
  Item& front() { return items_[head_ & mask()]; }
  const Item& front() const { return items_[head_ & mask()]; }
  const Item& back() const { return items_[(tail_ - 1) & mask()]; }
  /// Returns the i-th item, counted from the front.
  Item& operator[](std::size_t i) { return items_[(head_ + i) & mask()]; }
  const Item& operator[](std::size_t i) const { return items_[(head_ + i) & mask()]; }
  /// Appends `item`, which must not be an element of this queue.
  template <typename Value = Item>
  void push_back(Value&& item) {
    if (size() == capacity_) grow();
    items_[tail_++ & mask()] = std::forward<Value>(item);
  }
  /// Appends an item and returns it. The item still has the members that the previous item in this place
  /// had, so the caller must overwrite them.
  Item& push_back() {
    if (size() == capacity_) grow();
    return items_[tail_++ & mask()];
  }
  /// Does the same as push_back() but never allocates. Call it only if free() is not 0.
  Item& push_within() { return items_[tail_++ & mask()]; }
  /// Doubles the capacity. If there is no memory, throws std::bad_alloc and changes nothing.
  void grow() {
    const std::size_t wider = capacity_ == 0 ? kFirstCapacity : capacity_ * 2;
    auto items = std::make_unique<Item[]>(wider);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) items[i] = std::move((*this)[i]);
    items_ = std::move(items);
    capacity_ = wider;
    head_ = 0;
    tail_ = count;
  }
  /// Removes the first item. Resets an item that owns resources, so that they are released at once.
  void pop_front() {
    if constexpr (!std::is_trivially_destructible_v<Item>) items_[head_ & mask()] = Item{};
    ++head_;
  }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  static constexpr std::size_t kFirstCapacity = 64;

  std::size_t mask() const { return capacity_ - 1; }

  std::unique_ptr<Item[]> items_;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;  ///< `tail_ - head_` is the size
  std::size_t tail_ = 0;
};

}  // namespace cluster
