#include "wire/frame_encoder.h"

#include <cstring>

#include "wire/admit.h"

namespace cluster::wire {

void encode_frame(FrameHeader header, std::byte* start, std::span<const ConstBytes> pieces) {
  std::size_t length = 0;
  for (const ConstBytes piece : pieces) length += piece.size();
  header.magic = kMagic;
  header.version = kVersion;
  header.length = static_cast<std::uint16_t>(length);
  header.checksum = Le32{};
  std::memcpy(start, &header, sizeof header);
  header.checksum = frame_checksum(pieces);
  std::memcpy(start + kChecksumOffset, &header.checksum, sizeof header.checksum);
}

}  // namespace cluster::wire
