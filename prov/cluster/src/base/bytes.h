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

/// Calls visit(piece) for the contiguous pieces of the `length` bytes at position `offset` of the
/// concatenation of `slices`, until it answers false. Returns how many bytes are left then, or when the
/// slices end.
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

/// By what the application names registered memory of its own (fi_mr_desc): one for each slice of a buffer, null for a
/// slice without one. A transport may compare them with what it has registered; it must not follow them.
using MemoryHandles = void* const*;

/// `length` bytes that begin `offset` bytes into the concatenation of `slices`.
/// Invariant (the caller's): offset + length is at most the sum of the slices.
struct Gather {
  std::span<const ConstBytes> slices;
  std::size_t offset = 0;
  std::size_t length = 0;
  MemoryHandles handles = nullptr;  ///< null: the slices have none

  /// Copies the whole window to `target` (at least `length` bytes).
  void copy_to(std::byte* target) const;

  /// Writes at most `parts.size()` contiguous pieces that make up the window; returns how many, or 0 if it
  /// takes more pieces than that (use copy_to() then).
  std::size_t pieces(std::span<ConstBytes> parts) const;
};

/// The same to be written to; how much is said elsewhere.
struct Scatter {
  std::span<const Bytes> slices;
  std::size_t offset = 0;
  MemoryHandles handles = nullptr;
};

/// Copies `data` to position `offset` of the concatenation of `slices`; what does not fit is left
/// out. Returns the number of bytes copied.
std::size_t scatter(std::span<const Bytes> slices, std::size_t offset, ConstBytes data);

inline ConstBytes as_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
inline Bytes as_bytes(void* data, std::size_t size) { return {static_cast<std::byte*>(data), size}; }

/// Has the processor fetch what is soon read; of a long range the beginning, since it goes on by itself.
inline void prefetch(ConstBytes bytes) {
  constexpr std::size_t line = 64;
  constexpr std::size_t most = 4096;
  for (std::size_t at = 0; at < std::min(bytes.size(), most); at += line)
    __builtin_prefetch(bytes.data() + at);
}

// For paths where nearly every message is short and nearly every buffer contiguous: a few instructions in
// that case, otherwise the same as above.

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

/// scatter().
inline void scatter_short(std::span<const Bytes> slices, std::size_t offset, ConstBytes data) {
  if (slices.size() == 1 && offset + data.size() <= slices[0].size()) {
    copy_short(slices[0].data() + offset, data.data(), data.size());
  } else {
    scatter(slices, offset, data);
  }
}

}  // namespace cluster
