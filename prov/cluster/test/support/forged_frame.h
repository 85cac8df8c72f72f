// A frame that no engine has sent: the header of a genuine one, altered as a host would that knows the protocol.
// It is sound for the gate.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "wire/admit.h"
#include "wire/segment.h"

namespace cluster::test {

struct ForgedFrame {
  wire::FrameHeader header{};
  std::optional<wire::Segment> segment;

  explicit ForgedFrame(ConstBytes genuine) { std::memcpy(&header, genuine.data(), sizeof header); }

  std::vector<std::byte> bytes() const {
    wire::FrameHeader head = header;
    std::vector<std::byte> frame(sizeof head);
    if (segment) {
      std::byte encoded[wire::kSegmentHeaderMax];
      const std::size_t size = wire::encode(*segment, encoded);
      frame.insert(frame.end(), encoded, encoded + size);
    }
    head.length = static_cast<std::uint16_t>(frame.size());
    head.checksum = 0;
    std::memcpy(frame.data(), &head, sizeof head);
    const ConstBytes whole = frame;
    head.checksum = wire::frame_checksum({&whole, 1});
    std::memcpy(frame.data(), &head, sizeof head);
    return frame;
  }
};

}  // namespace cluster::test
