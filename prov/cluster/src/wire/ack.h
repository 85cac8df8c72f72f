// The ack block. It lists the frames that have arrived beyond the `ack` of the frame header, so that the peer
// retransmits only the missing frames (selective acknowledgement, as in RFC 2018).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/sequence.h"
#include "wire/endian.h"

namespace cluster::wire {

/// Consecutive frames that have arrived: from `first` up to, but not including, `end`.
struct SequenceRange {
  Sequence first;
  Sequence end;
  friend bool operator==(const SequenceRange&, const SequenceRange&) = default;
};

inline constexpr std::size_t kAckRangesMax = 32;

/// The layout on the wire. `count` pairs of Le32 (first, end) follow, one for each range. The ranges are
/// ascending, do not overlap or touch, and are all beyond the header's `ack`.
struct AckBlock {
  Le32 spurious;  ///< spurious retransmissions that have arrived in this flow so far
  Le16 count;
  Le16 reserved;
};
static_assert(sizeof(AckBlock) == 8);

struct Ack {
  std::uint32_t spurious = 0;
  std::size_t count = 0;
  SequenceRange ranges[kAckRangesMax];
};

/// Returns the number of bytes that encode() writes for this many ranges.
constexpr std::size_t ack_block_size(std::size_t ranges) { return sizeof(AckBlock) + 8 * ranges; }
std::size_t encode(const Ack& ack, std::byte* out);
/// Reads a block and returns its size in bytes, or 0 if it is invalid. `base` is the header's `ack`.
std::size_t decode(ConstBytes in, Sequence base, Ack& out);

}  // namespace cluster::wire
