// Copying payload into a ring.
//
// Measured on AMD Zen 4: the string instruction that memcpy uses for longer copies falls from more than
// 50 GB/s to 3.5 GB/s when the target lies 1 to 15 bytes behind the source modulo 4096. Pieces short
// enough that memcpy moves them with vector registers do not have that trap; cutting such a copy into
// pieces costs a little on processors without it.
#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace cluster::shm {

/// memcpy that keeps clear of the trap; the ranges must not overlap.
void copy(std::byte* target, const std::byte* source, std::size_t size);

/// The whole window to `target`, which holds at least payload.length bytes.
void copy(std::byte* target, const Gather& payload);

}  // namespace cluster::shm
