// Where a sealed frame ends, as far as its header says so: nothing is verified yet. What is to be believed of it is up to the
// association, or the group, that opens it.
#pragma once

#include <cstring>

#include "base/bytes.h"
#include "wire/frame.h"

namespace cluster::seal {

/// The frame at the front of what is left of a datagram; empty if it is none of this protocol, or reaches beyond.
inline Bytes first_frame(Bytes datagram, wire::FrameHeader& header) {
  if (datagram.size() < sizeof header) return {};
  std::memcpy(&header, datagram.data(), sizeof header);
  const bool ours = header.magic == wire::kMagic && header.version == wire::kVersion;
  if (!ours || header.length < sizeof header || header.length > datagram.size()) return {};
  return datagram.first(header.length);
}

}  // namespace cluster::seal
