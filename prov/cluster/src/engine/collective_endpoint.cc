#include "engine/collective_endpoint.h"

namespace cluster::engine {

namespace {

/// The port of all groups of teams, which their addresses and keys tell apart.
constexpr std::uint16_t kGroupPort = 7949;

/// Administratively scoped (RFC 2365: 239.192.0.0/14), or of the site and not assigned (RFC 4291: ff15::/16). Teams that
/// share an address ignore each other's frames.
SocketAddress group_address(SocketAddress::Family family, std::uint64_t key) {
  const auto byte = [key](unsigned shift) { return static_cast<std::byte>(key >> shift & 0xff); };
  if (family == SocketAddress::Family::v4) {
    const std::byte ip[4] = {std::byte{239}, std::byte{192} | (byte(16) & std::byte{3}), byte(8), byte(0)};
    return SocketAddress::v4(ip, kGroupPort);
  }
  std::byte ip[16] = {std::byte{0xff}, std::byte{0x15}};
  for (unsigned i = 0; i < 8; ++i) ip[8 + i] = byte(56 - 8 * i);
  return SocketAddress::v6(ip, kGroupPort);
}

}  // namespace

Status CollectiveEndpoint::join_group(std::uint64_t key, const std::vector<SocketAddress>& roster, std::uint64_t& handle) {
  JoinOp op{.address = group_address(parts_.name.family(), key), .key = key, .role = {true, true}, .roster = roster};
  op.of_team = true;
  loop_.disturb();
  return loop_.groups().join(op, handle);
}

Status CollectiveEndpoint::send(const protocol::SendOp& op) {
  if (is_group(op.to)) return loop_.groups().send(op);
  return loop_.post(op.to, op.more,
                    [&](protocol::Channel& channel) { return messenger_.send(channel, op); });
}

Status CollectiveEndpoint::receive(const protocol::RecvOp& op) {
  Peer* const peer = peers_.by_handle(op.from);
  if (peer == nullptr) return Status::bad_address;
  loop_.disturb();
  const Status status = messenger_.matcher().receive(&peer->channel, op);
  loop_.receive_posted();
  const bool gone = peer->absence.departed || peer->absence.lost != Status::ok;
  if (gone && peer->channel.carrier == nullptr) {
    const Status cause = peer->absence.departed ? Status::reset : peer->absence.lost;
    messenger_.matcher().fail_directed(peer->channel, cause, false);
  }
  return status;
}

std::size_t CollectiveEndpoint::discard(std::uint64_t tag, std::uint64_t ignore) {
  std::size_t count = 0;
  protocol::Matcher& matcher = messenger_.matcher();
  while (protocol::UnexpectedMessage* message = matcher.queues().collective().find(nullptr, tag, ignore)) {
    matcher.discard(*message);
    ++count;
  }
  return count;
}

}  // namespace cluster::engine
