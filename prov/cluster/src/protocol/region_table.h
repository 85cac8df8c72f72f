// Registered memory: what peers may read and write, by key. The endpoints of a domain share it.
//
// This table touches memory only under its lock. So once remove() returns, no access to the region happens
// any more, and atomics exclude each other and all that travels in segments. The lock is held for one
// segment's copy at a time.
//
// Peers on this node may access regions without this side (RegionOffers). Their accesses exclude only the end
// of a region, and remove() waits for them. This side serves accesses that it has to count.
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
  std::uint64_t length = 0;  ///< ~0 from address 0 means all memory
  bool readable = false;
  bool writable = false;
  Counter* reads = nullptr;  ///< bound counters of accesses by peers
  Counter* writes = nullptr;
  bool drawn_key = false;  ///< the key is 64 random bits, so a peer has it from the application
};

class RegionTable {
 public:
  /// `offers` may be null: then this side serves every access.
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
    } catch (...) {  // without memory the key stays free
      const std::lock_guard guard(lock_);
      regions_.erase(key);
      throw;
    }
    return true;
  }
  /// Removes a region. Returns false, and keeps it, if a peer does not finish using it.
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
  /// Lets peers of an endpoint on this node access the regions until the handle is dropped. This side serves
  /// accesses that the endpoint counts.
  std::shared_ptr<void> serve(const SocketAddress& endpoint, bool counts_reads, bool counts_writes) {
    return offers_ != nullptr ? offers_->serve(endpoint, counts_reads, counts_writes) : nullptr;
  }

  /// Calls visit(bytes, region) with the bytes of the range. Returns false if no region that allows the
  /// access contains it.
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
    // No arithmetic on `base`: for a region of all memory it points to nothing.
    visit(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(region.base) + offset), region);
    return true;
  }
  /// True if there is such a region, and the provider has drawn its key.
  bool drawn(std::uint64_t key) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(key);
    return found != regions_.end() && found->second.drawn_key;
  }
  /// True if the range lies in a region that allows the access.
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
