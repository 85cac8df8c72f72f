#include "wire/frame_encoder.h"

#include "wire/checksum.h"

namespace cluster::wire {

void encode_frame(FrameHeader& header, std::span<const ConstBytes> pieces) {
  std::size_t length = 0;
  for (const ConstBytes piece : pieces) length += piece.size();
  header.magic = kMagic;
  header.version = kVersion;
  header.length = static_cast<std::uint16_t>(length);
  header.checksum = Le32{};  // counts as zero
  std::uint32_t crc = 0;
  for (const ConstBytes piece : pieces) crc = crc32c(crc, piece);
  header.checksum = crc;
}

}  // namespace cluster::wire
