// Guard bytes around a buffer, all of one value, which no operation may write. The part that lends a buffer
// to the library checks them when it gets the buffer back.
#pragma once

#include <algorithm>

#include "base/bytes.h"

namespace cluster::sim {

inline constexpr std::byte kGuard{0xA5};
/// This many lie behind a buffer; regions have more on both sides.
inline constexpr std::size_t kGuardBytes = 16;

inline bool all(ConstBytes bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](std::byte byte) { return byte == value; });
}

}  // namespace cluster::sim
