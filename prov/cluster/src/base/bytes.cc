#include "base/bytes.h"

#include <algorithm>

namespace cluster {

void Gather::copy_to(std::byte* target) const {
  std::size_t skip = offset;
  std::size_t left = length;
  for (const ConstBytes& slice : slices) {
    if (left == 0) return;
    if (skip >= slice.size()) {
      skip -= slice.size();
      continue;
    }
    const std::size_t part = std::min(slice.size() - skip, left);
    std::memcpy(target, slice.data() + skip, part);
    target += part;
    left -= part;
    skip = 0;
  }
}

std::size_t Gather::pieces(std::span<ConstBytes> parts) const {
  std::size_t skip = offset;
  std::size_t left = length;
  std::size_t count = 0;
  for (const ConstBytes& slice : slices) {
    if (left == 0) break;
    if (skip >= slice.size()) {
      skip -= slice.size();
      continue;
    }
    if (count == parts.size()) return 0;
    const std::size_t part = std::min(slice.size() - skip, left);
    parts[count++] = slice.subspan(skip, part);
    left -= part;
    skip = 0;
  }
  return count;
}

std::size_t scatter(std::span<const Bytes> slices, std::size_t offset, ConstBytes data) {
  std::size_t copied = 0;
  for (const Bytes& slice : slices) {
    if (data.empty()) break;
    if (offset >= slice.size()) {
      offset -= slice.size();
      continue;
    }
    const std::size_t part = std::min(slice.size() - offset, data.size());
    std::memcpy(slice.data() + offset, data.data(), part);
    copied += part;
    data = data.subspan(part);
    offset = 0;
  }
  return copied;
}

}  // namespace cluster
