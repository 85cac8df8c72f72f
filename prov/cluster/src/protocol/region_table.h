// Registered memory: what peers may read and write, by key. Shared by the endpoints of a domain.
//
// Memory is touched only under the lock, so that once remove() returns nothing of a region is read
// or written any more, and so that atomics on it exclude every other way this provider touches it.
// The lock is held for one segment's copy at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/biased_lock.h"
#include "protocol/ops.h"

namespace cluster::protocol {

class Counter;

enum class Access : std::uint8_t { read, write, update };  ///< update: read and write in one step

struct MemoryRegion {
  std::byte* base = nullptr;
  std::uint64_t start = 0;   ///< the remote address of `base`: 0, or its virtual address
  std::uint64_t length = 0;  ///< all memory: ~0 from address 0
  bool readable = false;
  bool writable = false;
  Counter* reads = nullptr;  ///< bound counters of accesses by peers
  Counter* writes = nullptr;
};

class RegionTable {
 public:
  explicit RegionTable(ThreadFence fence = nullptr) : lock_(fence) {}

  /// False if the key is in use.
  bool add(std::uint64_t key, const MemoryRegion& region) {
    const std::lock_guard guard(lock_);
    return regions_.emplace(key, region).second;
  }
  void remove(std::uint64_t key) {
    const std::lock_guard guard(lock_);
    regions_.erase(key);
  }
  void count(std::uint64_t key, Counter* reads, Counter* writes) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(key);
    if (found == regions_.end()) return;
    if (reads != nullptr) found->second.reads = reads;
    if (writes != nullptr) found->second.writes = writes;
  }

  /// Calls visit(bytes, region) with the bytes of the range; false if it is not inside a region that allows
  /// it.
  template <typename Visit>
  bool with(const RmaIov& range, Access access, Visit&& visit) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(range.key);
    if (found == regions_.end()) return false;
    const MemoryRegion& region = found->second;
    const std::uint64_t offset = range.address - region.start;
    const bool inside =
        range.address >= region.start && offset <= region.length && range.length <= region.length - offset;
    const bool allowed =
        (access == Access::write || region.readable) && (access == Access::read || region.writable);
    if (!inside || !allowed) return false;
    // Not by arithmetic on `base`: that of a region of all memory points to nothing.
    visit(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(region.base) + offset), region);
    return true;
  }
  /// True if the range is inside a region that allows the access.
  bool allows(const RmaIov& range, Access access) {
    return with(range, access, [](std::byte*, const MemoryRegion&) {});
  }

 private:
  BiasedLock lock_;
  std::unordered_map<std::uint64_t, MemoryRegion> regions_;
};

}  // namespace cluster::protocol
