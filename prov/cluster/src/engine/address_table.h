// The table behind an address vector: handle <-> socket address. Shared by the endpoints of a domain, read
// far more often than written. A handle is the lowest free index, from 0, and is used again after removal.
// The generation changes with every such change of meaning, so an engine notices that a handle it has cached
// may name another peer by now.
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

namespace cluster::engine {

class AddressTable {
 public:
  using Handle = std::uint64_t;

  /// Inserting an address twice gives the same handle again (counted: it takes as many removals).
  Handle insert(const SocketAddress& address);
  /// False if no address has this handle.
  bool remove(Handle handle);
  /// Empty address if there is none.
  SocketAddress lookup(Handle handle) const;
  /// The handle of an address, if it is in the table.
  std::optional<Handle> find(const SocketAddress& address) const;
  /// Changes whenever a handle has lost its meaning, and whenever an address has gained one.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  struct Entry {
    SocketAddress address;
    std::uint32_t uses = 0;
  };

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::unordered_map<SocketAddress, Handle, SocketAddressHash> handles_;
  std::priority_queue<Handle, std::vector<Handle>, std::greater<>> free_;  ///< the lowest on top
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace cluster::engine
