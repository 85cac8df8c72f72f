#include "wire/ack.h"

namespace cluster::wire {

std::size_t encode(const Ack& ack, std::byte* out) {
  AckBlock block;
  block.spurious = ack.spurious;
  block.count = static_cast<std::uint16_t>(ack.count);
  block.reserved = 0;
  std::memcpy(out, &block, sizeof block);
  std::byte* at = out + sizeof block;
  for (std::size_t i = 0; i < ack.count; ++i) {
    const Le32 pair[2] = {ack.ranges[i].first.value, ack.ranges[i].end.value};
    std::memcpy(at, pair, sizeof pair);
    at += sizeof pair;
  }
  return ack_block_size(ack.count);
}

std::size_t decode(ConstBytes in, Sequence base, Ack& out) {
  AckBlock block;
  if (in.size() < sizeof block) return 0;
  std::memcpy(&block, in.data(), sizeof block);
  const std::size_t count = block.count;
  const std::size_t size = ack_block_size(count);
  if (count > kAckRangesMax || size > in.size()) return 0;
  out.spurious = block.spurious;
  out.count = count;
  Sequence last = base;
  for (std::size_t i = 0; i < count; ++i) {
    Le32 pair[2];
    std::memcpy(pair, in.data() + sizeof block + i * sizeof pair, sizeof pair);
    const SequenceRange range{{pair[0]}, {pair[1]}};
    // No range of a correct peer begins at `ack` or at the end of the previous range. A block with such a
    // range is invalid.
    if (!range.first.after(last) || !range.end.after(range.first)) return 0;
    // The check above limits each step to half the sequence space. The sum of the steps must also stay below
    // half of that space. Otherwise 32 ranges could wrap around, and comparisons with the later ones would be
    // wrong.
    if (!range.first.after(base) || !range.end.after(base)) return 0;
    out.ranges[i] = range;
    last = range.end;
  }
  return size;
}

}  // namespace cluster::wire
