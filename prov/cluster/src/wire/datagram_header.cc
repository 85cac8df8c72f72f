#include "wire/datagram_header.h"

#include <algorithm>
#include <cstring>

#include "wire/admit.h"

namespace cluster::wire {

DatagramHeader::DatagramHeader(const Segment& segment, std::span<const ConstBytes> payload)
    : size_(sizeof(FrameHeader) + encode(segment, storage_.data() + sizeof(FrameHeader))) {
  FrameHeader header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = static_cast<std::uint8_t>(FrameKind::datagram);
  header.length = static_cast<std::uint16_t>(size_ + segment.length);
  std::memcpy(storage_.data(), &header, sizeof header);
  std::array<ConstBytes, 1 + kPiecesMax> pieces;
  pieces[0] = bytes();
  std::copy(payload.begin(), payload.end(), pieces.begin() + 1);
  header.checksum = frame_checksum(std::span(pieces).first(1 + payload.size()));
  std::memcpy(storage_.data(), &header, sizeof header);
}

}  // namespace cluster::wire
