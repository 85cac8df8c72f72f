// The hardware address of a sender, behind a frame. A frame that begins a session or a path arrives in the
// UDP socket of the destination, and a UDP socket does not show the hardware address of the sender. If the
// kernel's table of hardware addresses is full, the link of the sender therefore appends the address to such
// a frame (docs/protocol.md 4.8). The header of the frame does not count these bytes, and no seal protects
// them. So a receiver uses the address only where it would otherwise use the table or send to all hosts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "link/link.h"
#include "os/packet_headers.h"
#include "wire/frame.h"

namespace cluster::os {

inline wire::AddressTrailer address_trailer(const HardwareAddress& mac) {
  wire::AddressTrailer trailer{};
  trailer.magic = wire::AddressTrailer::kMagic;
  std::memcpy(trailer.mac, mac.data(), mac.size());
  return trailer;
}

/// Returns true if the frame should show the hardware address of its sender. This is so if a session or a
/// path begins with the frame (os/port_filter.h), and if the frame stays short with an AddressTrailer.
inline bool shows_address(const link::OutFrame& frame) {
  constexpr std::size_t kSizeMax = 512 - sizeof(wire::AddressTrailer);
  wire::FrameHeader header;
  if (frame.pieces[0].size() < sizeof header || frame.size > kSizeMax || frame.count == link::kPiecesMax)
    return false;
  std::memcpy(&header, frame.pieces[0].data(), sizeof header);
  const bool begins = (header.flags & wire::frame_flag::kOpening) != 0 ||
                      (header.kind >= static_cast<std::uint8_t>(wire::FrameKind::path_challenge) &&
                       header.kind < static_cast<std::uint8_t>(wire::FrameKind::association_unknown));
  return header.magic == wire::kMagic && header.length == frame.size && begins;
}

/// Removes the AddressTrailer from a lone frame that has arrived. The path of the arrival then has the
/// hardware address, although it does not count as known. Has no effect if there is no trailer.
inline void take_address_trailer(link::InFrame& arrival) {
  wire::FrameHeader header;
  wire::AddressTrailer trailer;
  const std::size_t size = arrival.bytes.size();
  if (size < sizeof header + sizeof trailer) return;
  std::memcpy(&header, arrival.bytes.data(), sizeof header);
  if (std::size_t{header.length} + sizeof trailer != size || header.magic != wire::kMagic) [[likely]]
    return;
  std::memcpy(&trailer, arrival.bytes.data() + header.length, sizeof trailer);
  constexpr unsigned kGroupBit = 1;
  if (trailer.magic != wire::AddressTrailer::kMagic || (trailer.mac[0] & kGroupBit) != 0) return;
  arrival.bytes = arrival.bytes.first(header.length);
  std::memcpy(arrival.from.mac.data(), trailer.mac, sizeof trailer.mac);
}

}  // namespace cluster::os
