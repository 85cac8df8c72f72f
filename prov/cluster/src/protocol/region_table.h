// The regions of registered memory that peers may read or write, by key. All endpoints of a domain share the
// table.
//
// The code that executes segments accesses regions only through this table, under its lock. Therefore no
// segment accesses a region after remove() has returned, and an atomic operation excludes all other accesses
// by segments. The lock is held only while one segment, or one run of segments, is copied.
//
// Peers on this node may also access regions without the help of this process (RegionOffers). These accesses
// do not take the lock, but remove() waits until they have ended. Accesses that this process has to count
// always go through this table.
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
  std::uint64_t start = 0;   ///< the remote address of the byte at `base`: 0, or its virtual address
  std::uint64_t length = 0;  ///< ~0 with `start` 0 means all memory
  bool readable = false;
  bool writable = false;
  Counter* reads = nullptr;  ///< counters of accesses by peers; null: none is bound
  Counter* writes = nullptr;
  bool drawn_key = false;  ///< the key is 64 random bits, so a peer can learn it only from the application
};

class RegionTable {
 public:
  /// If `offers` is null, this process itself serves every access.
  explicit RegionTable(ThreadFence fence = nullptr, std::unique_ptr<RegionOffers> offers = nullptr)
      : lock_(fence), offers_(std::move(offers)) {}

  /// Adds a region. Returns false if the key is in use.
  bool add(std::uint64_t key, const MemoryRegion& region) {
    {
      const std::lock_guard guard(lock_);
      if (!regions_.emplace(key, region).second) return false;
    }
    if (offers_ == nullptr) return true;
    try {
      offers_->offer(key, offered(region));
    } catch (...) {  // if there is no memory, the key must stay free
      const std::lock_guard guard(lock_);
      regions_.erase(key);
      throw;
    }
    return true;
  }
  /// Removes a region. If a peer does not end its access to the region, returns false and keeps the region.
  bool remove(std::uint64_t key) {
    if (offers_ != nullptr && !offers_->withdraw(key)) return false;
    const std::lock_guard guard(lock_);
    regions_.erase(key);
    return true;
  }
  /// Binds counters to a region. Null leaves the counter as it is.
  void count(std::uint64_t key, Counter* reads, Counter* writes) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(key);
    if (found == regions_.end()) return;
    if (reads != nullptr) found->second.reads = reads;
    if (writes != nullptr) found->second.writes = writes;
    if (offers_ != nullptr) offers_->change(key, offered(found->second));
  }
  /// Lets the peers of `endpoint` on this node access the regions until the returned handle is released. If
  /// the endpoint counts reads or writes, this process itself serves these accesses.
  std::shared_ptr<void> serve(const SocketAddress& endpoint, bool counts_reads, bool counts_writes) {
    return offers_ != nullptr ? offers_->serve(endpoint, counts_reads, counts_writes) : nullptr;
  }

  /// Calls visit(pointer, region) with a pointer to the bytes of the range, and returns true. If no region
  /// contains the range and allows the access, returns false and does not call visit().
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
    // The address is computed as an integer, because `base` is null for a region of all memory.
    visit(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(region.base) + offset), region);
    return true;
  }
  /// Returns true if a region has this key, and the provider has drawn the key at random.
  bool drawn(std::uint64_t key) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(key);
    return found != regions_.end() && found->second.drawn_key;
  }
  /// Returns true if the range lies in a region that allows the access.
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
