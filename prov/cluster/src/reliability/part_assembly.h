// Frames that come in parts, because the path has ceased to carry frames as long as they are (frame_size.h): keeps
// the pieces until a frame is whole.
//
// Loss and acknowledgement know whole frames only. A frame of which a piece is lost is sent again, all of it; pieces
// that are here count, since a sender cuts a frame the same way every time. If it cuts it otherwise, or more than
// kFramesMax frames are incomplete, the older pieces are forgotten, which costs a retransmission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/sequence.h"
#include "wire/admit.h"

namespace cluster::reliability {

class PartAssembly {
 public:
  /// True if `view`, a part, was the last that its frame lacked: it becomes the view of the whole, whose segments stay
  /// valid until the next call.
  bool complete(wire::FrameView& view);

  /// Bytes of memory it holds.
  std::size_t footprint() const;

 private:
  struct Frame {
    Sequence sequence;
    std::uint8_t count = 0;
    std::uint64_t here = 0;  ///< a bit for each piece
    std::vector<std::byte> segments;

    bool whole() const { return here == ~std::uint64_t{0} >> (wire::kPartsMax - count); }
  };

  Frame& frame_of(const wire::FrameView& view);

  static constexpr std::size_t kFramesMax = 16;

  std::vector<Frame> frames_;        ///< oldest first
  std::vector<std::byte> complete_;  ///< what the caller is looking at
};

}  // namespace cluster::reliability
