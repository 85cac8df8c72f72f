// A frame with an opening, for tests of the simulator's judges. It passes the gate and comes from host 1.
// Its epoch is as large as its session. A numbered frame also carries padding. If the frame acknowledges, it
// acknowledges nothing that was sent.
#pragma once

#include <cstring>
#include <vector>

#include "sim/sim_network.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/segment.h"

namespace cluster::sim {

inline constexpr std::uint32_t kNoSession = 0;

/// Returns a frame to the session `to`. If `opening` is 0, the frame has no opening.
inline std::vector<std::byte> opening_frame(std::uint32_t to, std::uint32_t opening, std::uint8_t flags) {
  wire::OpeningBlock block;
  wire::Opening said;
  said.session = opening;
  said.epoch = opening;
  said.name = address_of(1);
  said.frame_max = 1472;
  said.window = 64;
  wire::encode(said, block);
  wire::FrameHeader header{};
  std::byte padding[wire::kSegmentHeaderMax];
  const bool numbered = (flags & wire::frame_flag::kSequenced) != 0;
  const std::size_t segment =
      numbered ? wire::encode(wire::Segment{.kind = wire::SegmentKind::padding}, padding) : 0;
  const std::size_t begin = sizeof header + (opening != kNoSession ? sizeof block : 0);
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::flow);
  header.flags = flags | (opening != kNoSession ? wire::frame_flag::kOpening : 0);
  header.length = static_cast<std::uint16_t>(begin + segment);
  header.session = to;
  std::vector<std::byte> bytes(sizeof header + sizeof block);
  std::memcpy(bytes.data() + sizeof header, &block, sizeof block);
  bytes.resize(begin);
  bytes.insert(bytes.end(), padding, padding + segment);
  std::memcpy(bytes.data(), &header, sizeof header);
  const ConstBytes whole = bytes;
  header.checksum = wire::frame_checksum({&whole, 1});
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace cluster::sim
