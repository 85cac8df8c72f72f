// Copies between contiguous and scattered memory for paths where nearly every message is short and nearly
// every buffer contiguous: a few instructions in that case, otherwise the same as Gather and scatter().
#pragma once

#include "base/bytes.h"

namespace cluster {

inline void copy_short(std::byte* target, const std::byte* source, std::size_t size) {
  if (size == sizeof(std::uint64_t)) {
    std::memcpy(target, source, sizeof(std::uint64_t));
  } else if (size != 0) {
    std::memcpy(target, source, size);
  }
}

/// Gather::copy_to().
inline void gather_short(const Gather& payload, std::byte* target) {
  if (payload.slices.size() != 1) return payload.copy_to(target);
  copy_short(target, payload.slices[0].data() + payload.offset, payload.length);
}

/// scatter() from the beginning.
inline void scatter_short(std::span<const Bytes> slices, ConstBytes data) {
  if (slices.size() == 1 && data.size() <= slices[0].size()) {
    copy_short(slices[0].data(), data.data(), data.size());
  } else {
    scatter(slices, 0, data);
  }
}

}  // namespace cluster
