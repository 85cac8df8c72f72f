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
//
// RDMA devices access regions without the lock, too. An engine holds a region before a device may access it,
// and releases the region afterwards. remove() makes the engines end what devices still do (RegionHolder).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

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
  bool drawn_key = false;    ///< the key is 64 random bits, so a peer can learn it only from the application
  std::uint64_t number = 0;  ///< no other region of the table ever has it; the table sets it
  std::size_t held = 0;      ///< ranges of the region that devices may access
};

/// A range of a region that a device may access until it is released.
struct HeldRange {
  std::byte* begin = nullptr;
  std::uint64_t key = 0;     ///< of the region
  std::uint64_t number = 0;  ///< of the region; 0: nothing is held
};

/// Ends what RDMA devices do with regions.
class RegionHolder {
 public:
  /// Called in remove(), without the lock of the table. When this function returns, no device of the holder
  /// accesses the region with this number.
  virtual void region_closed(std::uint64_t number) = 0;

 protected:
  ~RegionHolder() = default;
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
      const auto [added, is_new] = regions_.emplace(key, region);
      if (!is_new) return false;
      added->second.number = ++last_number_;
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
    std::uint64_t held = 0;
    {
      const std::lock_guard guard(lock_);
      const auto found = regions_.find(key);
      if (found == regions_.end()) return true;
      if (found->second.held != 0) held = found->second.number;
      regions_.erase(found);
    }
    if (held != 0) end_held(held);
    return true;
  }

  /// Lets a device access the range until release() is called. Returns nothing if no region contains the
  /// range and allows the access. Only holders may call this function.
  std::optional<HeldRange> hold(const RmaIov& range, Access access) {
    HeldRange held{.key = range.key};
    const bool allowed = with(range, access, [&](std::byte* begin, MemoryRegion& region) {
      held.begin = begin;
      held.number = region.number;
      ++region.held;
    });
    return allowed ? std::optional(held) : std::nullopt;
  }
  /// Does nothing if the region has been removed meanwhile.
  void release(const HeldRange& range) {
    const std::lock_guard guard(lock_);
    const auto found = regions_.find(range.key);
    if (found != regions_.end() && found->second.number == range.number) --found->second.held;
  }
  /// The caller must not hold a lock that region_closed() takes.
  void add(RegionHolder& holder) {
    const std::lock_guard guard(holders_lock_);
    holders_.push_back(&holder);
  }
  void remove(RegionHolder& holder) {
    const std::lock_guard guard(holders_lock_);
    std::erase(holders_, &holder);
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
    MemoryRegion& region = found->second;
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
  void end_held(std::uint64_t number) {
    const std::lock_guard guard(holders_lock_);
    for (RegionHolder* const each : holders_) each->region_closed(number);
  }
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
  std::uint64_t last_number_ = 0;
  std::mutex holders_lock_;  ///< taken before any lock of a holder
  std::vector<RegionHolder*> holders_;
};

}  // namespace cluster::protocol
