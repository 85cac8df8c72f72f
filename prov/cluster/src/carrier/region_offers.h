// How a domain offers its registered memory to the peers on its node. This is an interface: shm/ implements
// it in memory that processes share.
#pragma once

#include <cstdint>
#include <memory>

#include "base/address.h"

namespace cluster::carrier {

/// What peers may do with a region by themselves. This side's library serves or denies all other accesses.
struct OfferedRegion {
  std::uint64_t base = 0;    ///< the virtual address of its first byte
  std::uint64_t start = 0;   ///< the remote address of that byte
  std::uint64_t length = 0;  ///< a region of all memory has ~0, from address 0 on
  bool readable = false;
  bool writable = false;
  bool reads_served = false;   ///< peers may read it, through this side's library
  bool writes_served = false;  ///< peers may write it, through this side's library
};

/// The regions of one domain. Calls may be made by several threads at once.
class RegionOffers {
 public:
  virtual ~RegionOffers() = default;

  /// Offers a region. Withdraw a key before you offer it again.
  virtual void offer(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Changes what peers may do; base, start and length stay the same.
  virtual void change(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Closes the region to new accesses, and waits until no peer reads or writes it. Returns false if an
  /// access takes unreasonably long; then the caller may call again.
  virtual bool withdraw(std::uint64_t key) = 0;

  /// Lets the peers of this endpoint reach the regions until the handle is dropped. Dropping it waits for
  /// accesses in progress. `reads_served`, `writes_served`: this endpoint's library has to see all reads or
  /// all writes.
  virtual std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served,
                                      bool writes_served) = 0;
};

}  // namespace cluster::carrier
