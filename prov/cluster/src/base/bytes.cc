#include "base/bytes.h"

namespace cluster {

void Gather::copy_to(std::byte* target) const {
  each_piece(slices, offset, length, [&](ConstBytes piece) {
    std::memcpy(target, piece.data(), piece.size());
    target += piece.size();
    return true;
  });
}

std::size_t Gather::pieces(std::span<ConstBytes> parts) const {
  std::size_t count = 0;
  const std::size_t left = each_piece(slices, offset, length, [&](ConstBytes piece) {
    if (count == parts.size()) return false;
    parts[count++] = piece;
    return true;
  });
  return left == 0 ? count : 0;
}

std::size_t scatter(std::span<const Bytes> slices, std::size_t offset, ConstBytes data) {
  const std::byte* source = data.data();
  const std::size_t left = each_piece(slices, offset, data.size(), [&](Bytes piece) {
    std::memcpy(piece.data(), source, piece.size());
    source += piece.size();
    return true;
  });
  return data.size() - left;
}

}  // namespace cluster
