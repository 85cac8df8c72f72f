// The slices of a buffer. Only those in use are ever written: one of these is made for every message, and
// clearing all eight would cost more than the rest of it.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "protocol/ops.h"

namespace cluster::protocol {

template <typename Slice>
class IovArray {
 public:
  IovArray() {}
  void add(const Slice& slice) { slices_[count_++] = slice; }
  void add(std::span<const Slice> slices) {
    for (const Slice& slice : slices) add(slice);
  }
  void replace(const Slice& slice) {
    count_ = 0;
    add(slice);
  }
  std::span<const Slice> all() const { return {slices_.data(), count_}; }

 private:
  std::size_t count_ = 0;
  union {
    std::array<Slice, kIovMax> slices_;
  };
};

}  // namespace cluster::protocol
