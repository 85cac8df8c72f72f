// What precedes the bytes of a datagram: a frame header without session or sequence, and one segment of kind eager. Datagrams are never
// acknowledged or retransmitted.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/segment.h"

namespace cluster::wire {

/// Most bytes that a datagram has in front of its message. Its segment has neither tag nor id, but may have data.
inline constexpr std::size_t kDatagramHeaderMax = sizeof(FrameHeader) + 8 + 8;

/// Owns its bytes; the payload stays with the caller and follows it on the wire.
class DatagramHeader {
 public:
  static constexpr std::size_t kPiecesMax = 8;

  /// `segment.length` is the sum of the payload's at most kPiecesMax pieces.
  DatagramHeader(const Segment& segment, std::span<const ConstBytes> payload,
                 Integrity integrity = Integrity::checksum);

  ConstBytes bytes() const { return {storage_.data(), size_}; }

 private:
  std::array<std::byte, sizeof(FrameHeader) + kSegmentHeaderMax> storage_;
  std::size_t size_;
};

}  // namespace cluster::wire
