#include "connection/connection_message.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "wire/endian.h"
#include "wire/opening.h"

namespace cluster::connection {
namespace {

using wire::Le64;

struct Header {
  std::uint8_t kind;
  std::array<std::uint8_t, 7> zero;
  Le64 id;
};
static_assert(sizeof(Header) == kMessageHeader);

}  // namespace

MessageBytes encode(const Message& message) {
  MessageBytes out;
  const Header header{static_cast<std::uint8_t>(message.kind), {}, message.id};
  std::memcpy(out.bytes.data(), &header, sizeof header);
  if (!message.data.empty())
    std::memcpy(out.bytes.data() + sizeof header, message.data.data(), message.data.size());
  out.size = sizeof header + message.data.size();
  return out;
}

bool decode(ConstBytes in, Message& out) {
  Header header;
  if (in.size() < sizeof header || in.size() > kMessageMax) return false;
  std::memcpy(&header, in.data(), sizeof header);
  const bool known = header.kind >= static_cast<std::uint8_t>(MessageKind::request) &&
                     header.kind <= static_cast<std::uint8_t>(MessageKind::claim);
  const bool padded = std::ranges::all_of(header.zero, [](std::uint8_t byte) { return byte == 0; });
  if (!known || !padded) return false;
  out = {static_cast<MessageKind>(header.kind), header.id, in.subspan(sizeof header)};
  return true;
}

AddressBytes encode_address(const SocketAddress& address) {
  return std::bit_cast<AddressBytes>(wire::rail_block(address));
}

SocketAddress decode_address(ConstBytes in, const SocketAddress& sender) {
  wire::RailBlock block;
  if (in.size() != sizeof block) return {};
  std::memcpy(&block, in.data(), sizeof block);
  const SocketAddress address = wire::address_of(block, sender.scope());
  return wire::is_endpoint_address(address) ? address : SocketAddress{};
}

}  // namespace cluster::connection
