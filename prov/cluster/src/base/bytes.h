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

/// Walks over the `length` bytes that begin `offset` bytes into the concatenation of `slices`. Calls
/// visit(piece) for each contiguous piece of them, until visit() returns false. Returns how many bytes remain
/// then, or when the slices end.
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

/// The handles by which the application names its registered memory (fi_mr_desc): one for each slice of a
/// buffer, null for a slice that has none. A transport may compare a handle with those that it knows
/// (carrier/registered_memory.h). It must not dereference a handle.
using MemoryHandles = void* const*;

/// `length` bytes that begin `offset` bytes into the concatenation of `slices`. Invariant, which the caller
/// keeps: offset + length is at most the size of all slices.
struct Gather {
  std::span<const ConstBytes> slices;
  std::size_t offset = 0;
  std::size_t length = 0;
  MemoryHandles handles = nullptr;  ///< null: the slices have none

  /// Copies the whole window to `target` (at least `length` bytes).
  void copy_to(std::byte* target) const;

  /// Writes the contiguous pieces of the window to `parts` and returns their number. Returns 0 if `parts` is
  /// too short; then use copy_to().
  std::size_t pieces(std::span<ConstBytes> parts) const;
};

/// Memory to write to, from `offset` bytes into the concatenation of `slices` on. The call that uses it says
/// how many bytes.
struct Scatter {
  std::span<const Bytes> slices;
  std::size_t offset = 0;
  MemoryHandles handles = nullptr;
};

/// Copies `data` to position `offset` of the concatenation of `slices`. Leaves out what does not fit, and
/// returns the number of bytes copied.
std::size_t scatter(std::span<const Bytes> slices, std::size_t offset, ConstBytes data);

inline ConstBytes as_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
inline Bytes as_bytes(void* data, std::size_t size) { return {static_cast<std::byte*>(data), size}; }

/// Makes the processor fetch bytes that are read soon. Of a long range it fetches only the beginning: the
/// processor prefetches the rest by itself.
inline void prefetch(ConstBytes bytes) {
  constexpr std::size_t line = 64;
  constexpr std::size_t most = 4096;
  for (std::size_t at = 0; at < std::min(bytes.size(), most); at += line)
    __builtin_prefetch(bytes.data() + at);
}

// For paths where nearly every message is short and nearly every buffer is contiguous. In that case these
// functions take a few instructions; otherwise they call those above.

inline void copy_short(std::byte* target, const std::byte* source, std::size_t size) {
  if (size == sizeof(std::uint64_t)) {
    std::memcpy(target, source, sizeof(std::uint64_t));
  } else if (size != 0) {
    std::memcpy(target, source, size);
  }
}

/// Does what Gather::copy_to() does.
inline void gather_short(const Gather& payload, std::byte* target) {
  if (payload.slices.size() != 1) return payload.copy_to(target);
  copy_short(target, payload.slices[0].data() + payload.offset, payload.length);
}

/// Does what scatter() does.
inline void scatter_short(std::span<const Bytes> slices, std::size_t offset, ConstBytes data) {
  if (slices.size() == 1 && offset + data.size() <= slices[0].size()) {
    copy_short(slices[0].data() + offset, data.data(), data.size());
  } else {
    scatter(slices, offset, data);
  }
}

}  // namespace cluster
