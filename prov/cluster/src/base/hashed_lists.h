// Lists by key: an intrusive hash table whose members with one key stay in the order they came in. A
// list may also hold members with other keys that fall into the same bucket: the caller compares.
// Allocates only when it grows, never for a member: without memory for that its lists become longer, and only the
// first member of all needs some.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "base/list.h"

namespace cluster {

/// `KeyOf` is called as key_of(item) and answers with 64 bits that may not change while it is a member.
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
  /// Where the members with this key are, if any; go on with after().
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
  static constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;  ///< 2^64 by the golden ratio (Knuth)

  List<Item, hook>& bucket(std::uint64_t key) {
    return buckets_[(key * kSpread) >> (64 - std::countr_zero(buckets_.size()))];
  }
  void grow() {
    std::vector<List<Item, hook>> old;
    try {
      old.resize(buckets_.empty() ? kBucketsFirst : 2 * buckets_.size());
    } catch (const std::bad_alloc&) {
      if (buckets_.empty()) throw;
      return;
    }
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
