// A queue in one block of memory that doubles when full: no allocation in steady state. It is unbounded; its
// owner limits what goes in.
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
  /// How many more items fit without more memory.
  std::size_t free() const { return capacity_ - size(); }
  /// Bytes of memory that the queue holds.
  std::size_t footprint() const { return capacity_ * sizeof(Item); }
  Item& front() { return items_[head_ & mask()]; }
  const Item& front() const { return items_[head_ & mask()]; }
  /// The i-th item from the head.
  Item& operator[](std::size_t i) { return items_[(head_ + i) & mask()]; }
  const Item& operator[](std::size_t i) const { return items_[(head_ + i) & mask()]; }
  /// `item` must not lie in this ring.
  template <typename Value = Item>
  void push_back(Value&& item) {
    if (size() == capacity_) grow();
    items_[tail_++ & mask()] = std::forward<Value>(item);
  }
  /// Appends an item with the old contents of its place, and returns it. The caller overwrites it member by
  /// member.
  Item& push_back() {
    if (size() == capacity_) grow();
    return items_[tail_++ & mask()];
  }
  /// The same, without growing. free() must not be 0.
  Item& push_within() { return items_[tail_++ & mask()]; }
  /// Doubles the capacity. Throws std::bad_alloc, and changes nothing, if there is no memory.
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
  /// Removes the first item, and at once releases what it owns. An item that owns nothing may keep its bytes.
  void pop_front() {
    if constexpr (!std::is_trivially_destructible_v<Item>) items_[head_ & mask()] = Item{};
    ++head_;
  }
  /// Puts back the item that pop_front() has just removed. Nothing may have been pushed since.
  void undo_pop(Item&& item) { items_[--head_ & mask()] = std::move(item); }
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
