// Registered memory: what peers may read and write, by key. Shared by the endpoints of a domain.
//
// Here memory is touched only under the lock, so that once remove() returns nothing of a region is read
// or written any more, and so that atomics on it exclude each other and what travels in segments.
// The lock is held for one segment's copy at a time.
//
// Peers on this node may reach regions without this side (RegionOffers): they exclude nothing but the end of
// a region, for which remove() waits. What this side has to count, it serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/lock.h"
#include "carrier/region_offers.h"
#include "protocol/ops.h"

namespace cluster::protocol {

using carrier::RegionOffers;

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
  bool drawn_key = false;  ///< its key is 64 random bits: a peer has it from the application
};

class RegionTable {
 public:
  /// `offers` may be null: then this side serves every access.
  explicit RegionTable(ThreadFence fence = nullptr, std::unique_ptr<RegionOffers> offers = nullptr)
      : lock_(fence), offers_(std::move(offers)) {}

  /// False if the key is in use.
  bool add(std::uint64_t key, const MemoryRegion& region) {
    {
      const std::lock_guard guard(lock_);
      if (!regions_.emplace(key, region).second) return false;
    }
    if (offers_ == nullptr) return true;
    try {
      offers_->offer(key, offered(region));
    } catch (...) {  // without memory the key stays free
      const std::lock_guard guard(lock_);
      regions_.erase(key);
      throw;
    }
    return true;
  }
  /// False if a peer uses the region and does not come to an end: then it is still there.
  bool remove(std::uint64_t key) {
    if (offers_ != nullptr && !offers_->withdraw(key)) return false;
    const std::lock_guard guard(lock_);
    regions_.erase(key);
    return true;
  }
  void count(std::uint64_t key, Counter* reads, Counter* writes) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(key);
    if (found == regions_.end()) return;
    if (reads != nullptr) found->second.reads = reads;
    if (writes != nullptr) found->second.writes = writes;
    if (offers_ != nullptr) offers_->change(key, offered(found->second));
  }
  /// Peers of an endpoint on this node reach the regions until the handle is dropped. Those accesses that the
  /// endpoint counts are served.
  std::shared_ptr<void> serve(const SocketAddress& endpoint, bool counts_reads, bool counts_writes) {
    return offers_ != nullptr ? offers_->serve(endpoint, counts_reads, counts_writes) : nullptr;
  }

  /// Calls visit(bytes, region) with the bytes of the range. False: no region that allows the access contains it.
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
  /// True if there is such a region, and the provider has drawn its key.
  bool drawn(std::uint64_t key) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(key);
    return found != regions_.end() && found->second.drawn_key;
  }
  /// True if the range is inside a region that allows the access.
  bool allows(const RmaIov& range, Access access) {
    return with(range, access, [](std::byte*, const MemoryRegion&) {});
  }

 private:
  static carrier::OfferedRegion offered(const MemoryRegion& region) {
    return {.base = reinterpret_cast<std::uintptr_t>(region.base),
            .start = region.start,
            .length = region.length,
            .readable = region.readable,
            .writable = region.writable,
            .reads_served = region.reads != nullptr,
            .writes_served = region.writes != nullptr};
  }

  BiasedLock lock_;
  std::unique_ptr<RegionOffers> offers_;
  std::unordered_map<std::uint64_t, MemoryRegion> regions_;
};

}  // namespace cluster::protocol
