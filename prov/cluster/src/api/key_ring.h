// The authorization keys of an address vector (fi_av_insert_auth_key), in a domain that was opened with FI_AV_AUTH_KEY. Each
// has a realm (base/address.h), a small number: peers that were inserted with the key are addresses of this realm.
//
// Invariant: a realm means one key as long as anything refers to it, a peer, an endpoint or a region; so long the key cannot be
// removed. For all threads.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "api/auth_key.h"
#include "api/platform.h"
#include "base/address.h"

namespace cluster::api {

class KeyRing {
 public:
  static constexpr std::size_t kKeysMax = kRealmsMax;

  /// What an endpoint or a region has: the keys that were there when it was opened. They stay until it goes, and the ring
  /// outlives it.
  class Hold {
   public:
    Hold(KeyRing& ring, std::uint32_t realms) : ring_(ring), realms_(realms) {}
    ~Hold() { ring_.release(realms_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    /// A bit for each realm.
    std::uint32_t realms() const { return realms_; }
    /// They are valid as long as the hold.
    std::vector<RealmKey> keys() const { return ring_.keys(realms_); }

   private:
    KeyRing& ring_;
    std::uint32_t realms_;
  };

  /// 0, or a negative libfabric error. A key that is there already gets the same handle: it takes as many removals.
  int insert(const void* key, std::size_t size, fi_addr_t& handle);
  int remove(fi_addr_t handle);
  /// 0: the handle is none of a key.
  std::uint8_t realm_of(fi_addr_t handle) const;
  static fi_addr_t handle_of(std::uint8_t realm) { return kHandles + realm; }
  /// Writes as much as fits, and sets `size` to what it takes. False: there is no such key.
  bool copy(std::uint8_t realm, void* key, std::size_t& size) const;

  /// The realm of the key with this handle, which cannot be removed before drop_peer(). 0: there is no such key.
  std::uint8_t add_peer(fi_addr_t handle);
  void drop_peer(std::uint8_t realm);
  /// All that are there, or the one of a realm (0: all). Null: there is none.
  std::unique_ptr<Hold> hold(std::uint8_t realm = 0);

 private:
  /// Far from all handles of addresses, so that neither is taken for the other.
  static constexpr fi_addr_t kHandles = fi_addr_t{1} << 48;

  struct Entry {
    std::unique_ptr<AuthKey> key;  ///< null: free
    std::size_t inserted = 0;
    std::size_t peers = 0;
    std::size_t holds = 0;
  };

  static std::uint32_t bit(std::size_t realm) { return std::uint32_t{1} << realm; }
  std::vector<RealmKey> keys(std::uint32_t realms) const;
  void release(std::uint32_t realms);
  /// As realm_of(), under the lock.
  std::uint8_t present(fi_addr_t handle) const;
  /// Null: there is no such key.
  const Entry* entry(std::uint8_t realm) const;

  mutable std::mutex lock_;
  std::array<Entry, kKeysMax> entries_;  ///< that of realm 1 first
  std::size_t next_ = 0;  ///< where a place is looked for: one that was given back is used again as late as can be
};

}  // namespace cluster::api
