// An intrusive list: its members carry the links, so inserting and removing allocate nothing, and removing
// from the middle is O(1). A member is in at most one list per hook and must be removed before it is
// destroyed.
#pragma once

#include <cstddef>

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
  /// True if the item is in this list or in any other that uses the same hook.
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

}  // namespace cluster
