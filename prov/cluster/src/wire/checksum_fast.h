// CRC32C by the processor's own means: one source file per kind of processor, chosen by the build.
// Private to checksum.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cluster::wire::fast {

/// True if this very processor has what continued() needs.
bool available();
/// Takes the inner state on over `size` bytes (no inversion before or after).
std::uint32_t continued(std::uint32_t state, const std::byte* at, std::size_t size);

}  // namespace cluster::wire::fast
