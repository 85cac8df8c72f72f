#include "seal/association_frame.h"

#include <algorithm>
#include <cstring>

namespace cluster::seal {
namespace {

constexpr std::size_t kFixed =
    sizeof(wire::FrameHeader) + sizeof(AssociationBlock) + sizeof(wire::SealTrailer);

/// Nothing if the block names no endpoint.
SocketAddress address_in(const wire::RailBlock& block, std::uint32_t scope) {
  const auto* const ip = reinterpret_cast<const std::byte*>(block.ip);
  const SocketAddress address = block.family == 4   ? SocketAddress::v4(ip, block.port)
                                : block.family == 6 ? SocketAddress::v6(ip, block.port)
                                                    : SocketAddress{};
  if (address.empty() || address.wildcard() || address.port() == 0) return {};
  return address.link_local() ? SocketAddress::v6(ip, block.port, scope) : address;
}

wire::FrameHeader header_of(wire::FrameKind kind, std::size_t length, std::uint32_t id) {
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(kind);
  header.flags = wire::frame_flag::kSealed;
  header.length = static_cast<std::uint16_t>(length);
  header.checksum = id;
  return header;
}

}  // namespace

std::vector<std::byte> encode(const AssociationFrame& frame) {
  const std::vector<SocketAddress>& addresses = frame.sender.addresses;
  const std::size_t count = std::min(addresses.size(), wire::kRailsMax);
  std::vector<std::byte> bytes(kFixed + count * sizeof(wire::RailBlock));
  std::byte* at = bytes.data();
  const auto put = [&at](const auto& field) {
    std::memcpy(at, &field, sizeof field);
    at += sizeof field;
  };
  put(header_of(frame.kind, bytes.size(), sender_id(frame.sender.salt, frame.key_id)));
  AssociationBlock block{};
  std::copy(frame.key_id.begin(), frame.key_id.end(), block.key_id);
  std::copy(frame.sender.salt.begin(), frame.sender.salt.end(), block.salt);
  std::copy(frame.peer_salt.begin(), frame.peer_salt.end(), block.peer_salt);
  block.mode = static_cast<std::uint8_t>(frame.mode);
  block.prefers_aes = frame.sender.prefers_aes ? 1 : 0;
  block.addresses = static_cast<std::uint8_t>(count);
  block.to = wire::rail_block(frame.to);
  put(block);
  for (std::size_t i = 0; i < count; ++i) put(wire::rail_block(addresses[i]));
  wire::SealTrailer trailer{};
  trailer.counter = frame.number;
  put(trailer);
  return bytes;
}

std::optional<AssociationFrame> decode(ConstBytes bytes, std::uint32_t scope) {
  if (bytes.size() < kFixed + sizeof(wire::RailBlock)) return std::nullopt;
  wire::FrameHeader header;
  AssociationBlock block;
  wire::SealTrailer trailer;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(&block, bytes.data() + sizeof header, sizeof block);
  std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
  const std::size_t count = block.addresses;
  if (count == 0 || count > wire::kRailsMax) return std::nullopt;
  if (bytes.size() != kFixed + count * sizeof(wire::RailBlock)) return std::nullopt;
  AssociationFrame frame;
  frame.kind = static_cast<wire::FrameKind>(header.kind);
  std::copy(std::begin(block.key_id), std::end(block.key_id), frame.key_id.begin());
  std::copy(std::begin(block.salt), std::end(block.salt), frame.sender.salt.begin());
  std::copy(std::begin(block.peer_salt), std::end(block.peer_salt), frame.peer_salt.begin());
  frame.mode = static_cast<Mode>(block.mode);
  frame.sender.prefers_aes = block.prefers_aes != 0;
  frame.to = address_in(block.to, scope);
  frame.number = trailer.counter;
  const std::byte* at = bytes.data() + sizeof header + sizeof block;
  for (std::size_t i = 0; i < count; ++i, at += sizeof(wire::RailBlock)) {
    wire::RailBlock address;
    std::memcpy(&address, at, sizeof address);
    frame.sender.addresses.push_back(address_in(address, scope));
    if (frame.sender.addresses.back().empty()) return std::nullopt;
  }
  const bool valid =
      !frame.to.empty() && frame.number != 0 && header.checksum == sender_id(frame.sender.salt, frame.key_id);
  return valid ? std::optional(std::move(frame)) : std::nullopt;
}

wire::FrameHeader make_notice(const wire::FrameHeader& refused) {
  return header_of(wire::FrameKind::association_unknown, sizeof(wire::FrameHeader), refused.checksum);
}

}  // namespace cluster::seal
