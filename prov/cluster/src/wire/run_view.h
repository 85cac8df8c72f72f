// The gate for frames of a run: one long payload leaves as frames of equal length (reliability/sent_frames.h),
// and segmentation offload hands them on as they left, back to back. After admit() has let the first one in,
// those that continue it differ from it only in numbers that are known beforehand, so each is compared with
// what it must be instead of being read; only its checksum is computed.
//
// What is not such a continuation is left to admit(): other frames, a frame with another acknowledgement, the
// last one of a burst, which asks for an acknowledgement, and everything damaged.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "wire/admit.h"
#include "wire/segment.h"

namespace cluster::wire {

/// Frames that continue each other. Borrows from the bytes that were admitted.
struct RunView {
  std::size_t count = 0;         ///< frames; at least 2, with consecutive sequences and transmission numbers
  std::size_t frame_length = 0;  ///< of each
  Segment segment;               ///< of the first: each has one, of kind bulk or eager_next
  const std::byte* first = nullptr;  ///< the payload of the first

  ConstBytes payload(std::size_t i) const { return {first + i * frame_length, segment.length}; }
  /// Bytes of payload in all.
  std::size_t size() const { return count * segment.length; }
};

/// `first` is what admit() has made of the beginning of `bytes`. True if frames follow that continue it:
/// `out` is that one and those.
bool admit_run(ConstBytes bytes, const FrameView& first, RunView& out,
               Integrity integrity = Integrity::checksum);

}  // namespace cluster::wire
