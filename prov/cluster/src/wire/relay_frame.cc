#include "wire/relay_frame.h"

#include <algorithm>
#include <cstring>

namespace cluster::wire {

RelayFrame encode(const RelayMessage& message) {
  FrameHeader header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = static_cast<std::uint8_t>(message.kind);
  header.flags = frame_flag::kSealed;
  header.length = static_cast<std::uint16_t>(kRelayFrameSize);
  RelayBlock block{};
  std::ranges::copy(message.key_id, block.key_id);
  block.cookie = message.cookie;
  block.member = message.member;
  block.name = rail_block(message.name);
  SealTrailer trailer{};
  trailer.counter = message.number;
  RelayFrame frame;
  std::memcpy(frame.data(), &header, sizeof header);
  std::memcpy(frame.data() + sizeof header, &block, sizeof block);
  std::memcpy(frame.data() + sizeof header + sizeof block, &trailer, sizeof trailer);
  return frame;
}

std::optional<RelayMessage> decode_relay(ConstBytes frame) {
  FrameHeader header;
  RelayBlock block;
  SealTrailer trailer;
  if (frame.size() != kRelayFrameSize) return std::nullopt;
  std::memcpy(&header, frame.data(), sizeof header);
  std::memcpy(&block, frame.data() + sizeof header, sizeof block);
  std::memcpy(&trailer, frame.data() + sizeof header + sizeof block, sizeof trailer);
  const bool is_relay_frame = header.magic == kMagic && header.version == kVersion &&
                              header.kind >= static_cast<std::uint8_t>(FrameKind::relay_request) &&
                              header.kind <= static_cast<std::uint8_t>(FrameKind::relay_joined) &&
                              header.flags == frame_flag::kSealed && header.length == frame.size();
  if (!is_relay_frame) return std::nullopt;
  RelayMessage message;
  message.kind = static_cast<FrameKind>(header.kind);
  std::ranges::copy(block.key_id, message.key_id.begin());
  message.cookie = block.cookie;
  message.member = block.member;
  message.name = address_of(block.name, 0);
  message.number = trailer.counter;
  const bool valid = is_endpoint_address(message.name) && message.number != 0;
  return valid ? std::optional(message) : std::nullopt;
}

std::size_t tagged_frame(ConstBytes datagram, RelayTag& tag) {
  FrameHeader header;
  if (datagram.size() < sizeof header + sizeof tag) return 0;
  std::memcpy(&header, datagram.data(), sizeof header);
  const std::size_t length = header.length;
  const bool sealed = header.magic == kMagic && header.version == kVersion &&
                      (header.flags & frame_flag::kSealed) != 0 && length >= sizeof header;
  if (!sealed || length + sizeof tag > datagram.size()) return 0;
  std::memcpy(&tag, datagram.data() + length, sizeof tag);
  return tag.magic == kRelayMagic ? length : 0;
}

}  // namespace cluster::wire
