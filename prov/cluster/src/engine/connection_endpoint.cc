#include "engine/connection_endpoint.h"

#include <utility>
#include <vector>

namespace cluster::engine {

using connection::Message;
using connection::MessageBytes;

std::uint64_t ConnectionEndpoint::handle_of(const SocketAddress& name) {
  const std::optional<std::uint64_t> known = addresses_.find(name);
  return known ? *known : addresses_.insert(name);
}

void ConnectionEndpoint::send(const SocketAddress& to, const Message& message) {
  Letter letter{to, encode(message)};
  if (unsent_.empty() && deliver(letter)) return;
  unsent_.push_back(std::move(letter));
  pending_ = true;
}

/// Returns false if the message must be sent later. If no transport reaches the peer, the message is dropped,
/// and the watch of the peer ends.
bool ConnectionEndpoint::deliver(const Letter& letter) {
  const ConstBytes slice = letter.bytes.span();
  protocol::SendOp op{.slices = {&slice, 1}, .length = slice.size(), .to = handle_of(letter.to)};
  op.tag = connection::kTag;
  op.tagged = op.internal = op.inject = true;
  const Status status =
      loop_.post(op.to, false, [&](protocol::Channel& channel) { return messenger_.send(channel, op); });
  if (status == Status::ok) return true;
  if (status == Status::again) return false;
  if (watched_ != nullptr && watched_->name() == letter.to) {
    loss_ = connection::PeerLoss{letter.to, status, false};
    end_watch();
    pending_ = true;
  }
  return true;
}

void ConnectionEndpoint::watch(const SocketAddress& peer) {
  end_watch();
  watched_ = peers_.by_handle(handle_of(peer));
  protocol::RecvOp op{.context = this};
  op.tagged = op.internal = true;
  op.report = false;
  loop_.disturb();
  Status status = messenger_.matcher().receive(&watched_->channel, op);
  if (const transport::Lost* const lost = watched_->lost()) status = lost->cause;
  if (status != Status::ok) messenger_.matcher().fail_directed(watched_->channel, status, false);
}

void ConnectionEndpoint::end_watch() {
  if (std::exchange(watched_, nullptr) != nullptr) messenger_.matcher().cancel(this);
}

void ConnectionEndpoint::set_peer(const SocketAddress& peer) {
  Peer* const before = peers_.by_handle(kPeer);
  addresses_.remove(kPeer);
  if (const std::optional<std::uint64_t> known = addresses_.find(peer)) addresses_.remove(*known);
  addresses_.insert(peer);  // gets the lowest free handle, which is kPeer
  Peer* const now = peers_.by_handle(kPeer);
  if (before != now) messenger_.matcher().redirect(before->channel, now->channel);
  messenger_.matcher().offer_stored(now->channel);
  loop_.disturb();
}

void ConnectionEndpoint::cancel_receives() {
  messenger_.matcher().fail_directed(peers_.by_handle(kPeer)->channel, Status::canceled, true);
  loop_.disturb();
}

/// The peer is told that this endpoint closes, and both sides drop their session.
void ConnectionEndpoint::leave(const SocketAddress& name) {
  const std::optional<std::uint64_t> handle = addresses_.find(name);
  Peer* const peer = peers_.find(name);
  if (handle) addresses_.remove(*handle);
  if (peer == nullptr || peer->transport() == nullptr) return;
  peer->transport()->say_goodbye(*peer);
  peer->channel.peer_closed = true;  // this side has left in an orderly way
  peers_.mark_failed(*peer, Status::reset);
}

/// Called when the watched peer is lost or closes. `context` belongs to the only receive of this object.
void ConnectionEndpoint::received(void* /*context*/, Status status, std::size_t /*length*/) {
  if (watched_ == nullptr) return;  // end_watch() has canceled it
  loss_ = connection::PeerLoss{watched_->name(), status == Status::ok ? Status::reset : status,
                               watched_->channel.peer_closed};
  watched_ = nullptr;
  pending_ = true;
}

bool ConnectionEndpoint::wanted(std::uint64_t tag, std::uint64_t /*data*/, bool /*member*/) {
  if (tag != connection::kTag) return false;
  pending_ = true;
  return true;
}

/// Processes the messages before the loss of the peer, because they arrived earlier.
void ConnectionEndpoint::advance() {
  pending_ = false;
  while (!unsent_.empty() && deliver(unsent_.front())) unsent_.pop_front();
  while (take_stored()) {
  }
  if (loss_) {
    const connection::PeerLoss loss = *std::exchange(loss_, std::nullopt);
    if (connection_) connection_->peer_lost(loss);
  }
  pending_ |= !unsent_.empty() || !messenger_.matcher().queues().internal().stored().empty();
}

/// Takes the oldest completely received message out of the store. Returns false if there is none. A long
/// message, which is only announced, is dropped, because no connection message is long.
bool ConnectionEndpoint::take_stored() {
  protocol::Matcher& matcher = messenger_.matcher();
  const auto& stored = matcher.queues().internal().stored();
  protocol::UnexpectedMessage* found = stored.front();
  while (found != nullptr && !found->announced && found->arrived < found->total) found = stored.after(*found);
  if (found == nullptr) return false;
  MessageBytes bytes;
  const SocketAddress from = found->channel->name;
  if (!found->announced && found->total <= bytes.bytes.size()) {
    bytes.size = found->total;
    std::copy_n(found->bytes.get(), bytes.size, bytes.bytes.begin());
  }
  matcher.discard(*found);
  Message message;
  if (!decode(bytes.span(), message)) return true;
  if (connection_) connection_->arrived(from, message);
  if (listener_) listener_->arrived(from, message);
  return true;
}

}  // namespace cluster::engine
