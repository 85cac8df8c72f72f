// When a message matches a receive, and the key under which both are looked up: messages and receives that
// match under one mask have equal keys, so that an index needs one lookup per mask.
#pragma once

#include <cstdint>

namespace cluster::protocol {

struct Channel;

inline bool fits(const Channel* wanted, std::uint64_t wanted_tag, std::uint64_t ignore,
                 const Channel* channel, std::uint64_t tag) {
  return ((wanted_tag ^ tag) & ~ignore) == 0 && (wanted == nullptr || wanted == channel);
}

/// `channel` null: from any sender. Equal for all that match each other under one `ignore`.
inline std::uint64_t match_key(const Channel* channel, std::uint64_t tag, std::uint64_t ignore) {
  // Channels lie far apart, so their low bits carry no information, and tags are small numbers.
  return (tag & ~ignore) ^ (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(channel)) << 20);
}

}  // namespace cluster::protocol
