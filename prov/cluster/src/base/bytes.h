// The types in this header refer to memory of the caller: spans, and parts of buffers that consist of several
// slices. These types own no memory. The caller must keep the memory valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cluster {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// Visits `length` bytes of the concatenation of `slices`, from `offset` on. Calls visit(piece) for each
/// contiguous piece of these bytes, until visit() returns false. Returns the number of bytes that were not
/// visited. A piece for which visit() returned false counts as not visited.
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

/// Returns the bytes of the concatenation from `offset` on that lie in one slice, at most `length`.
template <typename Slice>
Slice piece_at(std::span<const Slice> slices, std::size_t offset, std::size_t length) {
  Slice found{};
  each_piece(slices, offset, length, [&](Slice piece) {
    found = piece;
    return false;
  });
  return found;
}

/// Returns `length` bytes of the concatenation from `offset` on if they lie in one slice, otherwise nothing.
template <typename Slice>
Slice contiguous(std::span<const Slice> slices, std::size_t offset, std::size_t length) {
  const Slice piece = piece_at(slices, offset, length);
  return piece.size() == length ? piece : Slice{};
}

/// An array of the handles by which the application names its registered memory (fi_mr_desc). It has one
/// element for each slice of a buffer, null for a slice without a handle. A transport may compare a handle
/// with those that it knows (carrier/registered_memory.h), but must not dereference it.
using MemoryHandles = void* const*;

/// A window of memory to read from: `length` bytes of the concatenation of `slices`, from `offset` on. The
/// window must not reach beyond the end of the last slice.
struct Gather {
  std::span<const ConstBytes> slices;
  std::size_t offset = 0;
  std::size_t length = 0;
  MemoryHandles handles = nullptr;  ///< null if no slice has a handle

  /// Copies the whole window to `target` (at least `length` bytes).
  void copy_to(std::byte* target) const;

  /// Writes the contiguous pieces of the window to `parts` and returns their number. Returns 0 if `parts` has
  /// too few elements. Use copy_to() in that case.
  std::size_t pieces(std::span<ConstBytes> parts) const;
};

/// Memory to write to: the concatenation of `slices`, from `offset` on. The call that uses a Scatter says how
/// many bytes it writes.
struct Scatter {
  std::span<const Bytes> slices;
  std::size_t offset = 0;
  MemoryHandles handles = nullptr;
};

/// Copies `data` to position `offset` of the concatenation of `slices`. Leaves out the bytes that do not fit.
/// Returns the number of bytes copied.
std::size_t scatter(std::span<const Bytes> slices, std::size_t offset, ConstBytes data);

inline ConstBytes as_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}
inline Bytes as_bytes(void* data, std::size_t size) { return {static_cast<std::byte*>(data), size}; }

/// Tells the processor that `bytes` will be read soon, so that it loads them into its cache. This function
/// covers at most the first 4096 bytes, because the processor prefetches the rest of a long range by itself.
inline void prefetch(ConstBytes bytes) {
  constexpr std::size_t line = 64;
  constexpr std::size_t most = 4096;
  for (std::size_t at = 0; at < std::min(bytes.size(), most); at += line)
    __builtin_prefetch(bytes.data() + at);
}

// The following functions are for code in which nearly every message is short and nearly every buffer is
// contiguous. For a short message in a contiguous buffer, they take a few instructions. For a buffer of
// several slices, they call the functions above.

inline void copy_short(std::byte* target, const std::byte* source, std::size_t size) {
  if (size == sizeof(std::uint64_t)) {
    std::memcpy(target, source, sizeof(std::uint64_t));
  } else if (size != 0) {
    std::memcpy(target, source, size);
  }
}

/// Does the same as Gather::copy_to().
inline void gather_short(const Gather& payload, std::byte* target) {
  if (payload.slices.size() != 1) return payload.copy_to(target);
  copy_short(target, payload.slices[0].data() + payload.offset, payload.length);
}

/// Copies the same bytes as scatter(), but does not return their number.
inline void scatter_short(std::span<const Bytes> slices, std::size_t offset, ConstBytes data) {
  if (slices.size() == 1 && offset + data.size() <= slices[0].size()) {
    copy_short(slices[0].data() + offset, data.data(), data.size());
  } else {
    scatter(slices, offset, data);
  }
}

}  // namespace cluster
