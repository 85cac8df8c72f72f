// The one encoder of frame headers: every frame that leaves, of a session or of none, is completed here. It
// knows no blocks and no segments; the caller has put them behind the header.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "wire/frame.h"

namespace cluster::wire {

/// Sets magic, version, length and checksum of `header` and writes it to `start`, where pieces[0] begins. The
/// pieces are the whole frame, header included; everything behind the header is there already.
void encode_frame(FrameHeader header, std::byte* start, std::span<const ConstBytes> pieces);

}  // namespace cluster::wire
