// What the kernel and a packet socket with PACKET_VNET_HDR tell each other about a frame, in front of it: virtio_net_hdr of
// <linux/virtio_net.h>, which is no C++ and on older systems has no UDP segmentation.
#pragma once

#include <cstdint>

namespace cluster::os {

struct OffloadHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;
  static constexpr std::uint8_t kGsoUdpL4 = 5;

  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t headers_size = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(OffloadHeader) == 10);

}  // namespace cluster::os
