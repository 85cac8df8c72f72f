// The table behind an address vector: handle <-> socket address. The endpoints of a domain share it, and read
// far more often than they write. A handle is the lowest free index, from 0, and is reused after removal. The
// generation changes with every such change of meaning, so an engine notices that a cached handle may now
// name another peer.
//
// A million addresses take some 30 bytes each. Entries lie in one block. Addresses of one bucket are chained
// by their numbers, two to a bucket. The table stores how often an address was inserted only if that is more
// than once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/address.h"

namespace cluster::transport {

class AddressTable {
 public:
  using Handle = std::uint64_t;

  /// The caller is about to insert `further` addresses.
  void expect(std::size_t further);
  /// Inserts an address and returns its handle. A second insertion returns the same handle, and needs a
  /// second removal.
  Handle insert(const SocketAddress& address);
  /// Removes a handle. Returns false if no address has it.
  bool remove(Handle handle);
  /// Returns the address of the handle, or an empty address if there is none.
  SocketAddress lookup(Handle handle) const;
  /// Returns a bound: every handle is smaller.
  Handle handles_end() const;
  /// Returns the handle of an address if the address is in the table.
  std::optional<Handle> find(const SocketAddress& address) const;
  /// Changes whenever a handle loses its meaning, and whenever an address gains a handle.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Entry {
    SocketAddress address;       ///< empty: free
    std::uint32_t next = kNone;  ///< the next entry in its bucket
  };

  std::uint32_t& bucket(const SocketAddress& address);
  std::uint32_t find_entry(const SocketAddress& address) const;
  void link(std::uint32_t number);
  void grow_buckets();

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  /// The first entry of each bucket, or kNone; their number is a power of two.
  std::vector<std::uint32_t> buckets_;
  std::unordered_map<Handle, std::uint32_t> further_uses_;
  std::priority_queue<Handle, std::vector<Handle>, std::greater<>> free_;  ///< the lowest on top
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace cluster::transport
