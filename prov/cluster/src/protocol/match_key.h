// What makes a message and a receive fit each other, and the key under which both are looked up: equal keys
// for whatever fits under one mask, so that an index needs one look per mask.
#pragma once

#include <cstdint>

namespace cluster::protocol {

struct Channel;

inline bool fits(const Channel* wanted, std::uint64_t wanted_tag, std::uint64_t ignore,
                 const Channel* channel, std::uint64_t tag) {
  return ((wanted_tag ^ tag) & ~ignore) == 0 && (wanted == nullptr || wanted == channel);
}

/// `channel` null: from anyone. Equal for all that fit each other under one `ignore`.
inline std::uint64_t match_key(const Channel* channel, std::uint64_t tag, std::uint64_t ignore) {
  // Channels lie far apart: their low bits say nothing, and tags are small numbers.
  return (tag & ~ignore) ^ (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(channel)) << 20);
}

}  // namespace cluster::protocol
