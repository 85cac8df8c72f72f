// The slices of a buffer, with the handles of registered memory that the application gave for them. Only those in use are
// ever written: one of these is made for every message, and clearing all eight would cost more than the rest of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/ops.h"

namespace cluster::protocol {

template <typename Slice>
class IovArray {
 public:
  IovArray() {}
  void add(const Slice& slice) { slices_[count_++] = slice; }
  /// All of a buffer; `handles`: one for each slice, or null.
  void add(std::span<const Slice> slices, MemoryHandles handles = nullptr) {
    for (const Slice& slice : slices) add(slice);
    if (handles != nullptr) [[unlikely]] {
      std::copy_n(handles, slices.size(), handles_.data());
      has_handles_ = true;
    }
  }
  void replace(const Slice& slice) {
    count_ = 1;
    has_handles_ = false;
    slices_[0] = slice;
  }
  std::span<const Slice> all() const { return {slices_.data(), count_}; }
  MemoryHandles handles() const { return has_handles_ ? handles_.data() : nullptr; }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t has_handles_ = false;
  union {
    std::array<Slice, kIovMax> slices_;
  };
  union {
    std::array<void*, kIovMax> handles_;
  };
};

}  // namespace cluster::protocol
