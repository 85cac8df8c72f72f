// Through this interface, a domain offers its registered memory to the peers on its node. shm/ implements the
// interface with memory that processes share.
#pragma once

#include <cstdint>
#include <memory>

#include "base/address.h"

namespace cluster::carrier {

/// A region, and the accesses that peers may perform without this side's library. All other accesses go to
/// this side's library, which performs or denies them.
struct OfferedRegion {
  std::uint64_t base = 0;    ///< the virtual address of the region's first byte
  std::uint64_t start = 0;   ///< the remote address of that byte
  std::uint64_t length = 0;  ///< ~0, with `base` 0, for a region that covers all memory
  bool readable = false;
  bool writable = false;
  bool reads_served = false;   ///< peers may read the region, but only through this side's library
  bool writes_served = false;  ///< peers may write the region, but only through this side's library
};

/// The regions of one domain. Several threads may call these methods at once.
class RegionOffers {
 public:
  virtual ~RegionOffers() = default;

  /// Offers a region under this key. A key must be withdrawn before it is offered again. If there is no place
  /// for the region, peers reach it only through this side's library.
  virtual void offer(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Replaces the access rights of the region with this key by those in `region`, which must have the same
  /// base, start and length as before.
  virtual void change(std::uint64_t key, const OfferedRegion& region) = 0;
  /// Stops new accesses to the region, and waits until no peer reads or writes it any more. Returns false if
  /// an access takes unreasonably long. In this case the caller may try again.
  virtual bool withdraw(std::uint64_t key) = 0;

  /// Lets the peers of this endpoint access the regions until the returned handle is destroyed. The
  /// destruction of the handle waits for accesses in progress. `reads_served`: true if all reads have to go
  /// through this endpoint's library. `writes_served`: the same for writes.
  virtual std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served,
                                      bool writes_served) = 0;
};

}  // namespace cluster::carrier
