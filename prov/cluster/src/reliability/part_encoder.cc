#include "reliability/part_encoder.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "wire/frame.h"

namespace cluster::reliability {

PartEncoder::PartEncoder(const link::OutFrame& whole, std::size_t front, const FrameLimits& limits)
    : path_(whole.path), front_(front), integrity_(limits.integrity) {
  for (const ConstBytes piece : std::span(whole.pieces).first(whole.count)) {
    whole_.insert(whole_.end(), piece.begin(), piece.end());
  }
  const std::size_t total = whole_.size() - front;
  const std::size_t capacity = limits.frame_max - front - sizeof block_;
  block_.number = 0;
  block_.count = static_cast<std::uint8_t>((total + capacity - 1) / capacity);
  block_.total = static_cast<std::uint16_t>(total);
}

link::OutFrame PartEncoder::next() {
  const std::size_t begin = block_.begin();
  const std::size_t size = std::min(block_.piece_max(), block_.total - begin);
  part_.assign(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(front_));
  part_.resize(front_ + sizeof block_ + size);
  std::memcpy(part_.data() + front_, &block_, sizeof block_);
  std::memcpy(part_.data() + front_ + sizeof block_, whole_.data() + front_ + begin, size);
  ++block_.number;
  auto& header = *std::launder(reinterpret_cast<wire::FrameHeader*>(part_.data()));
  header.flags |= wire::frame_flag::kPart;
  link::OutFrame out;
  out.path = path_;
  out.add(part_);
  wire::encode_frame(header, {out.pieces.data(), out.count}, integrity_);
  return out;
}

}  // namespace cluster::reliability
