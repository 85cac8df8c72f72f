// The memory of a peer process on the same node, where the kernel lets this process copy from and to it
// (cross-memory attach, CMA): large messages are then copied once, not twice through a ring
// (protocol/direct_copy.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace cluster::carrier {

class CrossMemory {
 public:
  virtual ~CrossMemory() = default;

  /// Copies `length` bytes from the peer's `address` to position `offset` of the concatenation of
  /// `slices`. False: not all of it was copied, and another attempt would fail, too.
  virtual bool read(std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                    std::size_t length) = 0;
  /// The same towards the peer.
  virtual bool write(std::uint64_t address, const Gather& source) = 0;
};

}  // namespace cluster::carrier
