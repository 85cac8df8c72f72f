// The table behind an address vector: handle <-> socket address. Shared by the endpoints of a domain, read
// far more often than written. A handle is the lowest free index, from 0, and is used again after removal.
// The generation changes with every such change of meaning, so an engine notices that a handle it has cached
// may name another peer by now.
//
// A million addresses take some 30 bytes each: entries lie in one block, those whose addresses fall into one
// bucket are chained by their numbers, two to a bucket, and how often an address was inserted is kept only where that is
// more than once.
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

  /// So many are about to be inserted.
  void expect(std::size_t further);
  /// Inserting an address twice gives the same handle again (counted: it takes as many removals).
  Handle insert(const SocketAddress& address);
  /// False if no address has this handle.
  bool remove(Handle handle);
  /// Empty address if there is none.
  SocketAddress lookup(Handle handle) const;
  /// No handle is as large.
  Handle handles_end() const;
  /// The handle of an address, if it is in the table.
  std::optional<Handle> find(const SocketAddress& address) const;
  /// Changes whenever a handle has lost its meaning, and whenever an address has gained one.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Entry {
    SocketAddress address;       ///< empty: free
    std::uint32_t next = kNone;  ///< in its bucket
  };

  std::uint32_t& bucket(const SocketAddress& address);
  std::uint32_t find_entry(const SocketAddress& address) const;
  void link(std::uint32_t number);
  void grow_buckets();

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> buckets_;  ///< the first entry of each, or kNone; a power of two of them
  std::unordered_map<Handle, std::uint32_t> further_uses_;
  std::priority_queue<Handle, std::vector<Handle>, std::greater<>> free_;  ///< the lowest on top
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace cluster::transport
