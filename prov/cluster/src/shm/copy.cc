#include "shm/copy.h"

#include <algorithm>
#include <cstdint>

namespace cluster::shm {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kTrapDistanceMax = 15;
constexpr std::size_t kPieceBytes = 2048;  ///< memcpy's own limit for vector registers is 2112

bool trapped(const std::byte* target, const std::byte* source) {
  const std::size_t distance =
      (reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(source)) % kPageBytes;
  return distance != 0 && distance <= kTrapDistanceMax;
}

}  // namespace

void copy(std::byte* target, const std::byte* source, std::size_t size) {
  if (size == 0) return;  // an empty slice may have no address
  if (size <= kPieceBytes || !trapped(target, source)) {
    std::memcpy(target, source, size);
    return;
  }
  for (std::size_t done = 0; done < size; done += kPieceBytes) {
    std::memcpy(target + done, source + done, std::min(kPieceBytes, size - done));
  }
}

void copy(std::byte* target, const Gather& payload) {
  std::size_t skip = payload.offset;
  std::size_t left = payload.length;
  for (const ConstBytes& slice : payload.slices) {
    if (left == 0) return;
    if (skip >= slice.size()) {
      skip -= slice.size();
      continue;
    }
    const std::size_t part = std::min(slice.size() - skip, left);
    copy(target, slice.data() + skip, part);
    target += part;
    left -= part;
    skip = 0;
  }
}

}  // namespace cluster::shm
