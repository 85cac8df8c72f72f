// The lists are intrusive: each item contains its links (a Hook). Therefore inserting and removing an item
// needs no allocation, and removing an item from the middle takes constant time. An item may have several
// hooks. With each hook, the item can be in one list at a time. An item must be removed from its lists before
// it is destroyed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cluster {

template <typename Item>
struct Hook {
  Item* previous = nullptr;
  Item* next = nullptr;
  bool linked = false;
};

template <typename Item, Hook<Item> Item::*hook>
class List {
 public:
  bool empty() const { return head_ == nullptr; }
  Item* front() const { return head_; }
  Item* back() const { return tail_; }
  static Item* after(const Item& item) { return (item.*hook).next; }
  static Item* before(const Item& item) { return (item.*hook).previous; }
  /// Returns true if the item is in this list, or in any other list that uses the same hook.
  static bool linked(const Item& item) { return (item.*hook).linked; }

  void push_back(Item& item) {
    Hook<Item>& links = item.*hook;
    links = {tail_, nullptr, true};
    (tail_ == nullptr ? head_ : (tail_->*hook).next) = &item;
    tail_ = &item;
  }

  void remove(Item& item) {
    Hook<Item>& links = item.*hook;
    (links.previous == nullptr ? head_ : (links.previous->*hook).next) = links.next;
    (links.next == nullptr ? tail_ : (links.next->*hook).previous) = links.previous;
    links = {};
  }

  Item* pop_front() {
    Item* const item = head_;
    if (item == nullptr) return nullptr;
    head_ = (item->*hook).next;
    (head_ == nullptr ? tail_ : (head_->*hook).previous) = nullptr;
    item->*hook = {};
    return item;
  }

 private:
  Item* head_ = nullptr;
  Item* tail_ = nullptr;
};

/// An intrusive hash table with one list for each bucket. Items with the same key stay in the order of their
/// insertion. A bucket may also contain items with other keys, so the caller must compare keys. insert() may
/// throw std::bad_alloc, but then it has changed nothing. key_of(item) returns the 64-bit key of an item. The
/// key must not change while the item is in the table.
template <typename Item, Hook<Item> Item::*hook, typename KeyOf>
class HashedLists {
 public:
  explicit HashedLists(KeyOf key_of) : key_of_(key_of) {}

  void insert(Item& item) {
    if (size_ >= buckets_.size()) grow();
    ++size_;
    bucket(key_of_(item)).push_back(item);
  }
  void remove(Item& item) {
    --size_;
    bucket(key_of_(item)).remove(item);
  }
  /// Returns the first item in the bucket of this key, or null if the bucket is empty. after() returns the
  /// next item of the bucket.
  Item* first(std::uint64_t key) { return size_ == 0 ? nullptr : bucket(key).front(); }
  static Item* after(const Item& item) { return List<Item, hook>::after(item); }

  std::size_t size() const { return size_; }
  void clear() {
    for (auto& list : buckets_) {
      while (list.pop_front() != nullptr) {
      }
    }
    size_ = 0;
  }

 private:
  static constexpr std::size_t kBucketsFirst = 64;
  static constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  ///< 2^64 divided by the golden ratio (Knuth)

  List<Item, hook>& bucket(std::uint64_t key) {
    return buckets_[(key * kSpread) >> (64 - std::countr_zero(buckets_.size()))];
  }
  void grow() {
    std::vector<List<Item, hook>> old(buckets_.empty() ? kBucketsFirst : 2 * buckets_.size());
    old.swap(buckets_);
    for (auto& list : old) {
      while (Item* item = list.pop_front()) bucket(key_of_(*item)).push_back(*item);
    }
  }

  KeyOf key_of_;
  std::vector<List<Item, hook>> buckets_;
  std::size_t size_ = 0;
};

}  // namespace cluster
