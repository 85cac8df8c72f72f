#include "wire/datagram_header.h"

#include <algorithm>

#include "wire/frame.h"

namespace cluster::wire {

DatagramHeader::DatagramHeader(const Segment& segment, std::span<const ConstBytes> payload,
                               Integrity integrity)
    : size_(sizeof(FrameHeader) + encode(segment, storage_.data() + sizeof(FrameHeader))) {
  std::array<ConstBytes, 1 + kPiecesMax> pieces;
  pieces[0] = bytes();
  std::copy(payload.begin(), payload.end(), pieces.begin() + 1);
  FrameHeader& header = header_at(storage_.data());
  header.kind = static_cast<std::uint8_t>(FrameKind::datagram);
  encode_frame(header, std::span(pieces).first(1 + payload.size()), integrity);
}

}  // namespace cluster::wire
