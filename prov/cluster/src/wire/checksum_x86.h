// The two implementations of an x86-64 processor to CRC32C, each with a file of its own. Both take the inner
// state on over `size` bytes, without inversion before or after. Private to the files checksum*_x86.cc,
// and only for a processor that has the instructions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cluster::wire::fast {

/// By three chains of the instruction crc32: needs SSE4.2 and PCLMULQDQ.
std::uint32_t chained(std::uint32_t state, const std::byte* at, std::size_t size);
/// By folding in vectors of 64 bytes, short data by chains: needs AVX-512F and VPCLMULQDQ besides.
std::uint32_t folded(std::uint32_t state, const std::byte* at, std::size_t size);

}  // namespace cluster::wire::fast
