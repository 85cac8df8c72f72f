#include "engine/collective_endpoint.h"

namespace cluster::engine {

Status CollectiveEndpoint::send(const protocol::SendOp& op) {
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
