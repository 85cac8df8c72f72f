// Cuts a frame that has proven too long for the path into parts (wire/frame.h: PartBlock), which keep its sequence and
// its transmission number: they are one sending of the frame. The same frame is always cut the same way while the
// frame size stays, so pieces of several sendings go together.
#pragma once

#include <cstddef>
#include <vector>

#include "link/link.h"
#include "reliability/session_frame.h"
#include "wire/frame.h"

namespace cluster::reliability {

class PartEncoder {
 public:
  /// `whole` is complete; its first `front` bytes are the header and the blocks, which each part repeats.
  PartEncoder(const link::OutFrame& whole, std::size_t front, const FrameLimits& limits);

  std::size_t count() const { return block_.count; }
  /// The first `parts` have left with an earlier sending.
  void skip(std::size_t parts) { block_.number = static_cast<std::uint8_t>(parts); }
  /// The next part; stays there until the next call.
  link::OutFrame next();

 private:
  const link::Path* path_;
  std::size_t front_;
  wire::Integrity integrity_;
  std::vector<std::byte> whole_;
  wire::PartBlock block_;
  std::vector<std::byte> part_;
};

}  // namespace cluster::reliability
