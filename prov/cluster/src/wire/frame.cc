#include "wire/frame.h"

#include <array>
#include <cstring>

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

/// Writes words of eight bytes, because the checksum reads such words, and the processor would wait for words
/// that were written in pieces.
void encode_lone(const LoneNumbers& numbers, std::uint8_t flags, std::byte* start, std::size_t length) {
  const std::uint64_t kind = static_cast<std::uint64_t>(FrameKind::flow) << 16 | std::uint64_t{flags} << 24;
  const std::array<Le64, 4> words{
      kMagic | std::uint64_t{kVersion} << 8 | kind | std::uint64_t{length} << 32 |
          std::uint64_t{numbers.ack_delay} << 48,
      std::uint64_t{numbers.session} << 32,
      numbers.sequence.value | std::uint64_t{numbers.transmission.value} << 32,
      numbers.ack.value | std::uint64_t{numbers.largest_acked.value} << 32,
  };
  static_assert(sizeof words == sizeof(FrameHeader));
  std::memcpy(start, words.data(), sizeof words);
  const Le32 checksum = crc32c(0, {start, length});
  std::memcpy(start + kChecksumOffset, &checksum, sizeof checksum);
}

}  // namespace cluster::wire
