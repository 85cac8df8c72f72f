// CRC32C by the processor's own means: one set of source files per kind of processor, chosen by the
// build. Private to checksum.cc and the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cluster::wire::fast {

/// Takes the inner state on over `size` bytes (no inversion before or after).
using UpdateFunction = std::uint32_t (*)(std::uint32_t state, const std::byte* at, std::size_t size);

struct Implementation {
  std::string_view name;
  UpdateFunction update;
};

/// What this very processor has the instructions for, the fastest first; none if only tables are left.
std::span<const Implementation> implementations();

}  // namespace cluster::wire::fast
