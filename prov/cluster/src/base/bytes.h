// Borrowed memory: spans, and a Gather, which is a window of a scattered buffer. Nothing here owns memory;
// the caller keeps it alive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cluster {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// Calls visit(piece) for the contiguous pieces of the `length` bytes at position `offset` of the concatenation
/// of `slices`, until it answers false. Returns how many bytes are left then, or when the slices end.
template <typename Slice, typename Visitor>
std::size_t each_piece(std::span<const Slice> slices, std::size_t offset, std::size_t length,
                       Visitor&& visit) {
  for (const Slice& slice : slices) {
    if (length == 0) break;
    if (offset >= slice.size()) {
      offset -= slice.size();
      continue;
    }
    const Slice piece = slice.subspan(offset, std::min(slice.size() - offset, length));
    if (!visit(piece)) break;
    length -= piece.size();
    offset = 0;
  }
  return length;
}

/// `length` bytes that begin `offset` bytes into the concatenation of `slices`.
/// Invariant (the caller's): offset + length is at most the sum of the slices.
struct Gather {
  std::span<const ConstBytes> slices;
  std::size_t offset = 0;
  std::size_t length = 0;

  /// Copies the whole window to `target` (at least `length` bytes).
  void copy_to(std::byte* target) const;

  /// Writes at most `parts.size()` contiguous pieces that make up the window; returns how many, or 0 if it
  /// takes more pieces than that (use copy_to() then).
  std::size_t pieces(std::span<ConstBytes> parts) const;
};

/// Copies `data` to position `offset` of the concatenation of `slices`; what does not fit is left
/// out. Returns the number of bytes copied.
std::size_t scatter(std::span<const Bytes> slices, std::size_t offset, ConstBytes data);

inline ConstBytes as_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
inline Bytes as_bytes(void* data, std::size_t size) { return {static_cast<std::byte*>(data), size}; }

}  // namespace cluster
