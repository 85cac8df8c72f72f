// The table behind an address vector. It maps handles to socket addresses and back. A new address gets the
// lowest free index, counted from 0, as its handle. Once the address is removed, the handle is free and may
// be given to another address. The table is read far more often than it is changed, so each engine keeps a
// cache of handles. The generation number changes whenever a handle is given or freed. So an engine notices
// that a handle in its cache may now name another peer.
//
// A large table needs some 30 bytes per address. All entries lie in one block of memory. A hash table finds
// the entry of an address. It has at least one bucket for every two entries, and the entries of a bucket form
// a list that is linked by index. The table counts the insertions of an address only if the address was
// inserted more than once.
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

  /// Reserves memory for `further` more addresses, which the caller is about to insert.
  void expect(std::size_t further);
  /// Declares that messages from an address without a user identifier have no source (FI_AV_USER_ID for the
  /// whole address vector). Without this call, their source is the handle.
  void require_user_ids() { user_ids_required_ = true; }
  /// Sets the source of messages from this address. Returns false if no address has this handle.
  bool set_user_id(Handle handle, std::uint64_t id);
  /// Inserts an address and returns its handle. If the address is already in the table, returns the handle
  /// that it has. The handle stays valid until it has been removed as often as its address was inserted.
  Handle insert(const SocketAddress& address);
  /// Undoes one insertion of the handle's address. Returns false if no address has this handle.
  bool remove(Handle handle);
  /// Returns the address of the handle, or an empty address if there is none.
  SocketAddress lookup(Handle handle) const;
  /// Returns an upper bound: every handle is smaller than this number.
  Handle handles_end() const;
  /// Returns the handle of an address, or nothing if the address is not in the table.
  std::optional<Handle> find(const SocketAddress& address) const;
  /// The sender of messages: its handle, and the source that completions report.
  struct Sender {
    Handle handle;
    std::uint64_t source;
  };
  /// Returns the sender with this address. Both of its numbers are `none` if the address is not in the table.
  Sender find_sender(const SocketAddress& address, std::uint64_t none) const;
  /// Returns the generation number. It changes whenever an address gains or loses its handle, or
  /// gets a user identifier.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Entry {
    SocketAddress address;       ///< empty if the entry is free
    std::uint32_t next = kNone;  ///< the next entry in its bucket
  };

  std::uint32_t& bucket(const SocketAddress& address);
  std::uint32_t find_entry(const SocketAddress& address) const;
  void link(std::uint32_t number);
  void grow_buckets();

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  /// The index of the first entry in each bucket, or kNone. The number of buckets is a power of two.
  std::vector<std::uint32_t> buckets_;
  std::unordered_map<Handle, std::uint32_t> further_uses_;
  std::unordered_map<Handle, std::uint64_t> user_ids_;
  bool user_ids_required_ = false;
  /// Handles of free entries; the lowest is on top.
  std::priority_queue<Handle, std::vector<Handle>, std::greater<>> free_;
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace cluster::transport
