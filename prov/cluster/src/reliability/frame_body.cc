#include "reliability/frame_body.h"

#include "wire/segment.h"

namespace cluster::reliability {

void FrameBody::set_padding(std::size_t size) {
  static constexpr std::array<std::byte, wire::kFrameMax / kPayloadPiecesMax + 1> blank{};
  wire::Segment segment;
  segment.kind = wire::SegmentKind::padding;
  const std::size_t header = wire::encoded_size(segment);
  std::size_t left = size > header ? size - header : 0;
  segment.length = static_cast<std::uint32_t>(left);
  reset();
  filled = wire::encode(segment, segments());
  for (; left > 0; left -= payload[payload_pieces - 1].size()) {
    add_reference_to(ConstBytes(blank).first(std::min(left, blank.size())));
  }
}

}  // namespace cluster::reliability
