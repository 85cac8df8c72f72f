#include "engine/collective_endpoint.h"

#include <array>

namespace cluster::engine {

namespace {

/// Returns a multicast address for a team. The address is from a range that every network may use freely:
/// 239.192.0.0/14 (RFC 2365) or ff15::/16. If two teams get the same address, the key in each frame tells
/// them apart.
SocketAddress address_of_team(std::uint64_t key, SocketAddress::Family family, std::uint16_t port) {
  const std::uint64_t bits = key * 0x9e3779b97f4a7c15u;
  if (family == SocketAddress::Family::v6) {
    std::array<std::byte, 16> ip{std::byte{0xff}, std::byte{0x15}};
    for (std::size_t i = 0; i < 4; ++i) ip[12 + i] = static_cast<std::byte>(bits >> (32 + 8 * i));
    return SocketAddress::v6(ip.data(), port);
  }
  const std::array<std::byte, 4> ip{std::byte{239}, static_cast<std::byte>(192 | (bits >> 62)),
                                    static_cast<std::byte>(bits >> 48), static_cast<std::byte>(bits >> 40)};
  return SocketAddress::v4(ip.data(), port);
}

}  // namespace

std::uint64_t CollectiveEndpoint::open_group(const std::vector<SocketAddress>& members, std::uint64_t key) {
  loop_.disturb();
  const std::uint16_t port = parts_.settings.team_port;
  JoinOp op{.address = address_of_team(key, members.front().family(), port),
            .key = key,
            .role = {},
            .roster = members};
  op.content = protocol::GroupProtocol::Content::collectives;
  std::uint64_t group = 0;
  loop_.groups().join(op, group);
  loop_.wake_sleepers();
  return group;
}

Status CollectiveEndpoint::receive(const protocol::RecvOp& op) {
  Peer* const peer = peers_.by_handle(op.from);
  if (peer == nullptr) return Status::bad_address;
  loop_.disturb();
  if (peer->channel.carrier == nullptr) loop_.await_contact();
  const Status status = messenger_.matcher().receive(&peer->channel, op);
  loop_.receive_posted();
  const bool departed = peer->departed();
  if (departed || peer->lost() != nullptr) {
    messenger_.matcher().fail_directed(peer->channel, departed ? Status::reset : peer->lost()->cause, false);
  }
  return status;
}

std::size_t CollectiveEndpoint::discard(std::uint64_t tag, std::uint64_t ignore) {
  std::size_t count = 0;
  protocol::Matcher& matcher = messenger_.matcher();
  while (protocol::UnexpectedMessage* message = matcher.queues().internal().find(nullptr, tag, ignore)) {
    matcher.discard(*message);
    ++count;
  }
  return count;
}

}  // namespace cluster::engine
