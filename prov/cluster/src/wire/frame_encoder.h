// The one encoder of frame headers: every frame that leaves, of a session or of none, is completed here. It
// knows no blocks and no segments; the caller has put them behind the header.
#pragma once

#include <cstddef>
#include <new>
#include <span>

#include "base/bytes.h"
#include "wire/frame.h"

namespace cluster::wire {

/// A new header where a frame begins. It is filled in place, since a copy of what was just written byte by byte
/// would wait for the processor's store buffer, once a frame.
inline FrameHeader& header_at(std::byte* start) { return *new (start) FrameHeader{}; }

/// Sets magic, version, length and checksum. The pieces are the whole frame and begin with the header;
/// everything else is there already. A frame that will be sealed has no checksum.
void encode_frame(FrameHeader& header, std::span<const ConstBytes> pieces,
                  Integrity integrity = Integrity::checksum);
/// The same in two steps, for frames that have the first in common: all but the checksum, and that.
void encode_kind(FrameHeader& header, std::size_t frame_length);
void encode_checksum(FrameHeader& header, std::span<const ConstBytes> pieces,
                     Integrity integrity = Integrity::checksum);

}  // namespace cluster::wire
