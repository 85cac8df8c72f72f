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
  using Kind = connection::MessageKind;
  Letter letter{.to = to, .id = message.id, .bytes = encode(message)};
  letter.asks = message.kind == Kind::request || message.kind == Kind::claim || message.kind == Kind::accept;
  if (listener_) letter.handle = addresses_.insert(to);
  if (unsent_.empty() && deliver(letter)) return;
  unsent_.push_back(std::move(letter));
  pending_ = true;
}

/// Returns false if the message must be sent later. If the message cannot be sent at all, for example because
/// no transport reaches the peer, the message is dropped, and the watch of the peer ends.
bool ConnectionEndpoint::deliver(const Letter& letter) {
  const ConstBytes slice = letter.bytes.span();
  protocol::SendOp op{.slices = {&slice, 1}, .length = slice.size()};
  op.to = listener_ ? letter.handle : handle_of(letter.to);
  op.tag = connection::kTag;
  op.data = letter.id;
  op.tagged = op.internal = op.inject = op.has_data = true;
  if (listener_) op.context = reinterpret_cast<void*>(letter.handle);  // sent() gets it back
  if (letter.asks) {
    op.completion_level = protocol::CompletionLevel::delivery;
    op.context = peers_.by_handle(op.to);
  }
  const Status status = loop_.send(op);
  if (status == Status::ok) return true;
  if (status == Status::again) return false;
  if (listener_) addresses_.remove(letter.handle);
  if (watched_ != nullptr && watched_->name() == letter.to) {
    loss_ = connection::PeerLoss{letter.to, status, false};
    end_watch();
    pending_ = true;
  }
  return true;
}

/// `context`: the handle to which a passive endpoint has sent, or the peer to which this side has sent a
/// message with Letter::asks.
void ConnectionEndpoint::sent(void* context, Status status) {
  if (listener_) {
    addresses_.remove(reinterpret_cast<std::uintptr_t>(context));
  } else if (status != Status::ok && context != nullptr) {
    const bool over = connection_->state() == connection::ConnectionEnd::State::over;
    const Peer* const peer = over ? peers_.by_handle(kPeer) : watched_;
    if (peer != context) return;
    loss_ = connection::PeerLoss{peer->name(), status, peer->channel.peer_closed};
    pending_ = true;
  }
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

bool ConnectionEndpoint::receiving(const SocketAddress& name) {
  const Peer* const peer = peers_.find(name);
  return peer != nullptr && (!peer->channel.incoming.empty() || peer->channel.assembly.active());
}

/// Tells the peer that this endpoint closes. Both sides then drop their session.
void ConnectionEndpoint::leave(const SocketAddress& name) {
  const std::optional<std::uint64_t> handle = addresses_.find(name);
  Peer* const peer = peers_.find(name);
  if (handle && *handle != kPeer) addresses_.remove(*handle);
  if (watched_ == peer) end_watch();
  if (peer != nullptr && peer->transport() != nullptr) reach_.leave(*peer);
}

/// Called when the watched peer is lost or closes, or when a fetched message has arrived or is lost.
void ConnectionEndpoint::received(void* context, Status status, std::size_t length) {
  if (context == &fetched_) {
    fetched_.under_way = false;
    fetched_.bytes.size = status == Status::ok ? length : 0;
    pending_ = true;
    return;
  }
  if (watched_ == nullptr) return;  // end_watch() has canceled the receive
  loss_ = connection::PeerLoss{watched_->name(), status == Status::ok ? Status::reset : status,
                               watched_->channel.peer_closed};
  watched_ = nullptr;
  pending_ = true;
}

bool ConnectionEndpoint::wanted(std::uint64_t tag, std::uint64_t data, bool /*member*/) {
  if (tag != connection::kTag || (connection_ && !connection_->expects(data))) return false;
  pending_ = true;
  return true;
}

/// Processes the messages before the loss of the peer, because the messages arrived before the loss.
void ConnectionEndpoint::advance() {
  pending_ = false;
  while (!unsent_.empty() && deliver(unsent_.front())) unsent_.pop_front();
  while (take_stored()) {
  }
  if (loss_) {
    const connection::PeerLoss loss = *std::exchange(loss_, std::nullopt);
    if (connection_) connection_->peer_lost(loss);
  }
  const bool ending = connection_ && connection_->state() == connection::ConnectionEnd::State::ending;
  if (ending) connection_->try_to_end();
  pending_ |= ending || !unsent_.empty() || !messenger_.matcher().queues().internal().stored().empty();
}

/// Finds the oldest stored message that is whole or announced. Processes a whole message, and begins to fetch
/// an announced one. Returns false if there is nothing to do now. Messages behind one that is being fetched
/// wait, because messages are processed in order.
bool ConnectionEndpoint::take_stored() {
  if (fetched_.under_way) return false;
  if (const std::size_t size = fetched_.bytes.size; size != 0) {
    const MessageBytes bytes = std::exchange(fetched_.bytes, {});
    process(fetched_.from, bytes);
    return true;
  }
  protocol::Matcher& matcher = messenger_.matcher();
  const auto& stored = matcher.queues().internal().stored();
  protocol::UnexpectedMessage* found = stored.front();
  while (found != nullptr && !found->announced && found->arrived < found->total) found = stored.after(*found);
  if (found == nullptr) return false;
  drop_earlier(*found);
  MessageBytes bytes;
  if (found->total > bytes.bytes.size()) {
    matcher.discard(*found);  // no connection message is so long
  } else if (found->announced) {
    return fetch(*found);
  } else {
    const SocketAddress from = found->channel->name;
    bytes.size = found->total;
    std::copy_n(found->bytes.get(), bytes.size, bytes.bytes.begin());
    matcher.discard(*found);
    process(from, bytes);
  }
  return true;
}

/// Called before a connection message is processed. While this side connects, the message may be an accept,
/// whose sender is about to become the peer. Messages that arrived before the accept come from an earlier
/// endpoint at the same address, and are dropped.
void ConnectionEndpoint::drop_earlier(const protocol::UnexpectedMessage& message) {
  if (!connection_ || connection_->state() != connection::ConnectionEnd::State::connecting) return;
  const auto& stored = message.channel->unexpected.messages;
  protocol::UnexpectedMessage* each = stored.front();
  while (each != nullptr && each != &message) {
    protocol::UnexpectedMessage* const next = stored.after(*each);
    if (!each->internal && each->available()) messenger_.matcher().discard(*each);
    each = next;
  }
}

/// Begins to fetch an announced message. Returns false if the caller must try again later.
bool ConnectionEndpoint::fetch(const protocol::UnexpectedMessage& announced) {
  fetched_.under_way = true;
  fetched_.from = announced.channel->name;
  const Bytes slice(fetched_.bytes.bytes);
  protocol::RecvOp op{.slices = {&slice, 1}, .context = &fetched_, .tag = connection::kTag};
  op.tagged = op.internal = true;
  Status status = Status::no_memory;
  enough_memory_for([&] { status = messenger_.matcher().receive(announced.channel, op); });
  if (status != Status::ok) fetched_.under_way = false;
  return status == Status::ok;
}

void ConnectionEndpoint::process(const SocketAddress& from, const MessageBytes& bytes) {
  Message message;
  if (!decode(bytes.span(), message)) return;
  if (connection_) connection_->arrived(from, message);
  if (listener_) listener_->arrived(from, message);
}

}  // namespace cluster::engine
