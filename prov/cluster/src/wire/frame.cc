#include "wire/frame.h"

#include "wire/checksum.h"

namespace cluster::wire {

void encode_frame(FrameHeader& header, std::span<const ConstBytes> pieces, Integrity integrity) {
  std::size_t length = 0;
  for (const ConstBytes piece : pieces) length += piece.size();
  encode_kind(header, length);
  encode_checksum(header, pieces, integrity);
}

void encode_kind(FrameHeader& header, std::size_t frame_length) {
  header.magic = kMagic;
  header.version = kVersion;
  header.length = static_cast<std::uint16_t>(frame_length);
}

void encode_checksum(FrameHeader& header, std::span<const ConstBytes> pieces, Integrity integrity) {
  header.checksum = Le32{};  // counts as zero in the checksum
  if (integrity == Integrity::seal) return;
  std::uint32_t crc = 0;
  for (const ConstBytes piece : pieces) crc = crc32c(crc, piece);
  header.checksum = crc;
}

}  // namespace cluster::wire
