// The last mapped region of a peer, as the access lane needs it (shm/access_lane.h). A window contains
// everything that an access needs, and shows only pages that are populated (os/peer_mapping.h). The checks of
// an access are those of shm/region_layout.h. They need fewer steps here, because an entry with the same
// generation has the same key and bounds as before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/on_exit.h"
#include "shm/region_layout.h"

namespace cluster::shm {

/// Marks the entry as in use as long as the returned object lives.
inline auto use(UsePage& page, std::uint32_t entry) {
  const std::atomic_ref word(page.entry);
  word.store(entry + 1, std::memory_order_relaxed);
  // The mark is written before the entry's state is read.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return OnExit([word] { word.store(0, std::memory_order_release); });
}

class RegionWindow {
 public:
  /// Opens the window to a part of the region of this entry, which must be marked as in use. `memory`: the
  /// part in this process. `address`: the remote address of its first byte. The entry, `page` and `memory`
  /// must exist until the window is closed.
  void open(const RegionEntries& entries, std::uint32_t number, UsePage& page, std::uint64_t address,
            Bytes memory) {
    number_ = number;
    entry_ = &entries.at(number);
    page_ = &page;
    key_ = entry_->key;
    generation_ = entry_->generation;
    address_ = address;
    memory_ = memory;
  }
  void close() { memory_ = {}; }
  bool shows(std::uint64_t key) const { return key == key_ && !memory_.empty(); }

  /// Calls copy(bytes) if the window shows the whole range, and the region still exists and allows the
  /// access. Otherwise does nothing and returns false. `right`: RegionEntry::kWritable or kReadable.
  /// `served`: kWritesServed or kReadsServed. The range must not be empty.
  template <typename Copy>
  [[gnu::always_inline]] bool access(std::uint64_t key, std::uint64_t address, std::size_t length,
                                     std::uint32_t right, std::uint32_t served, Copy&& copy) const {
    const std::uint64_t offset = address - address_;
    if (key != key_ || length > memory_.size() || offset > memory_.size() - length) return false;
    const auto used = use(*page_, number_);
    const std::uint32_t state = std::atomic_ref(entry_->state).load(std::memory_order_acquire);
    const std::uint32_t needed = RegionEntry::kLive | right;
    if ((state & (needed | served)) != needed || entry_->generation != generation_ ||
        std::atomic_ref(page_->revoked).load(std::memory_order_relaxed) != 0) {
      return false;
    }
    copy(memory_.data() + offset);
    return true;
  }

 private:
  std::uint64_t key_ = 0;
  std::uint64_t address_ = 0;
  Bytes memory_;  ///< empty while the window is closed
  UsePage* page_ = nullptr;
  RegionEntry* entry_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace cluster::shm
