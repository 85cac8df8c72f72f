// One long payload that leaves as frames of equal length with consecutive sequences: one description for all
// of them instead of a body each. The frames are described by arithmetic and encoded from it whenever one is
// sent; the send window still knows of each when it left and whether it has arrived, so a loss concerns that
// frame alone.
//
// The payload is referred to in user memory until the peer has all of it.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/sequence.h"
#include "carrier/carrier.h"
#include "wire/segment.h"

namespace cluster::reliability {

struct FrameRun {
  Sequence first;
  wire::Segment segment;  ///< of the first frame; those of the others continue it
  ConstBytes payload;     ///< of all frames together
  std::size_t part = 0;   ///< of it in each frame
  carrier::Token token = 0;
  bool ordered = false;
  std::size_t outstanding = 0;  ///< frames that the peer does not have; 0: the description is free

  std::size_t frames() const { return payload.size() / part; }
  Sequence end() const { return first + static_cast<std::uint32_t>(frames()); }
  /// Where the part of this frame begins.
  std::size_t offset_of(Sequence s) const { return static_cast<std::size_t>(s - first) * part; }
};

}  // namespace cluster::reliability
