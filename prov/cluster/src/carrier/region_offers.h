// What a domain lets the peers of its node see of its registered memory. An interface: shm/ implements it over memory that
// processes share.
#pragma once

#include <cstdint>
#include <memory>

#include "base/address.h"

namespace cluster::carrier {

/// What peers may do with a region by themselves. This side's library serves or denies all other accesses.
struct OfferedRegion {
  std::uint64_t base = 0;    ///< the virtual address of its first byte
  std::uint64_t start = 0;   ///< the remote address of that byte
  std::uint64_t length = 0;  ///< all memory: ~0 from address 0
  bool readable = false;
  bool writable = false;
  bool reads_served = false;   ///< peers may read it, through this side's library
  bool writes_served = false;  ///< the same of writes
};

/// The regions of one domain. Calls may be made by several threads at once.
class RegionOffers {
 public:
  virtual ~RegionOffers() = default;

  /// A key is not offered again before it is withdrawn.
  virtual void offer(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Changes what peers may do; base, start and length stay.
  virtual void change(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Waits until no peer reads or writes the region. False if an access takes unreasonably long; then the region is closed
  /// to new accesses, and the call may be repeated.
  virtual bool withdraw(std::uint64_t key) = 0;

  /// From now on the peers of this endpoint reach the regions, until the handle is dropped, which waits for
  /// accesses under way. `reads_served`, `writes_served`: this endpoint's library has to see all of them.
  virtual std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served,
                                      bool writes_served) = 0;
};

}  // namespace cluster::carrier
