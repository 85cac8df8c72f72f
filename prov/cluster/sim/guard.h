// Guard bytes around a buffer. They all have one value, and no operation may write them. The part of the
// application that lends the buffer to the library checks them when it gets the buffer back.
#pragma once

#include <algorithm>

#include "base/bytes.h"

namespace cluster::sim {

inline constexpr std::byte kGuard{0xA5};
/// So many guard bytes lie behind a buffer. Regions have more of them, on both sides.
inline constexpr std::size_t kGuardBytes = 16;

inline bool all(ConstBytes bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](std::byte byte) { return byte == value; });
}

}  // namespace cluster::sim
