// A pool of objects of one type. It allocates memory in blocks. Each object has a 32-bit id, which consists
// of its slot and the slot's generation. A peer that has received the id can send it back after the object
// was released. For such an id find() returns null, although another object may use the slot by now. This
// protection ends after 2048 further uses of the slot, when the generation has the same value again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace cluster {

template <typename Item>
class Pool {
 public:
  /// Limits the number of objects that exist at once to `limit` or kSlotsMax, whichever is smaller.
  explicit Pool(std::size_t limit) : limit_(limit < kSlotsMax ? limit : kSlotsMax) {}

  /// Returns a default-initialized object with its `id` set. Members without an initializer may have any
  /// value. Returns null if the limit is reached.
  Item* acquire() {
    if (alive_ == limit_) return nullptr;
    if (free_.empty()) grow();
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    ++alive_;
    Cell& cell = cell_at(slot);
    cell.taken = true;
    std::destroy_at(&cell.item);
    ::new (static_cast<void*>(&cell.item)) Item;  // not Item(), which would first set all its bytes to zero
    cell.item.id = (cell.generation << kSlotBits) | slot;
    return &cell.item;
  }

  void release(Item& item) {
    const std::uint32_t slot = item.id & kSlotMask;
    Cell& cell = cell_at(slot);
    cell.taken = false;
    cell.generation = (cell.generation + 1) & kGenerationMask;
    free_.push_back(slot);
    --alive_;
  }

  Item* find(std::uint32_t id) {
    const std::uint32_t slot = id & kSlotMask;
    if (slot >= blocks_.size() * kBlockItems) return nullptr;
    Cell& cell = cell_at(slot);
    return cell.taken && cell.item.id == id ? &cell.item : nullptr;
  }

  std::size_t alive() const { return alive_; }
  /// Makes sure that the next `count` calls of acquire() need no memory.
  void reserve(std::size_t count) {
    while (free_.size() < count) grow();
  }
  bool has_free(std::size_t count) const { return limit_ - alive_ >= count; }

 private:
  static constexpr std::uint32_t kSlotBits = 21;
  static constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;
  static constexpr std::uint32_t kGenerationMask = (1u << (32 - kSlotBits)) - 1;
  static constexpr std::size_t kSlotsMax = std::size_t{1} << kSlotBits;
  static constexpr std::size_t kBlockItems = 64;

  struct Cell {
    Item item;
    std::uint32_t generation = 0;
    bool taken = false;
  };

  Cell& cell_at(std::uint32_t slot) { return blocks_[slot / kBlockItems][slot % kBlockItems]; }

  void grow() {
    const auto first = static_cast<std::uint32_t>(blocks_.size() * kBlockItems);
    free_.reserve(first + kBlockItems);  // the two calls that can throw are made first
    blocks_.push_back(std::make_unique<Cell[]>(kBlockItems));
    for (std::size_t i = kBlockItems; i-- > 0;) free_.push_back(first + static_cast<std::uint32_t>(i));
  }

  std::size_t limit_;
  std::size_t alive_ = 0;
  std::vector<std::unique_ptr<Cell[]>> blocks_;
  std::vector<std::uint32_t> free_;
};

}  // namespace cluster
