// What precedes the payload of a frame on the wire: virtio_net_hdr if the packet socket wants one,
// Ethernet, and IPv4 and UDP if the frame is UDP.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire_choice.h"

namespace perf {

constexpr std::uint16_t kExperimentalType = 0x88B6;  // IEEE 802: local experimental
constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kUdpHeadersBytes = kEthernetBytes + 20 + 8;
constexpr std::size_t kVnetBytes = 10;

/// One side as the other side addresses it. Network byte order.
struct WireAddress {
  std::array<std::uint8_t, 6> mac{};
  std::uint16_t port = 0;
  std::uint32_t ip = 0;
};

/// The interface's own; the port is 0.
WireAddress address_of(const std::string& interface);

/// For `payload` bytes; if `segment` is not 0 it is cut into datagrams of so many on the way.
std::vector<char> headers(const WireChoice& choice, const WireAddress& from, const WireAddress& to,
                          std::size_t payload, std::size_t segment);
/// Without the virtio_net_hdr.
std::size_t headers_bytes(const WireChoice& choice);

[[noreturn]] void fail(const std::string& what);

}  // namespace perf
