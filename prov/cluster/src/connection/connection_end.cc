#include "connection/connection_end.h"

namespace cluster::connection {

void ConnectionEnd::connect(const SocketAddress& passive, std::uint64_t id, ConstBytes data) {
  state_ = State::connecting;
  peer_ = passive;
  id_ = id;
  courier_.watch(passive);
  courier_.send(passive, {MessageKind::request, id, data});
}

void ConnectionEnd::set_asker(const SocketAddress& asker, std::uint64_t id) {
  state_ = State::asked;
  peer_ = asker;
  id_ = id;
  courier_.set_peer(asker);
}

void ConnectionEnd::accept(ConstBytes data) {
  courier_.watch(peer_);
  courier_.send(peer_, {MessageKind::accept, id_, data});
  established({});
}

bool ConnectionEnd::shut_down() {
  switch (state_) {
    case State::idle:
    case State::over: return false;
    case State::connecting: break;  // an accept that arrives later is answered with a shutdown
    case State::asked: courier_.send(peer_, {MessageKind::reject, id_}); break;
    case State::connected:
    case State::ending: courier_.send(peer_, {MessageKind::shutdown, id_}); break;
  }
  end(Status::ok);
  return true;
}

void ConnectionEnd::arrived(const SocketAddress& from, const Message& message) {
  if (!expects(message.id)) return;
  switch (message.kind) {
    case MessageKind::accept:
      if (state_ == State::connecting) {
        courier_.end_watch();
        if (from != peer_) courier_.leave(peer_);
        peer_ = from;
        courier_.set_peer(from);
        courier_.watch(from);
        established(message.data);
      } else if (state_ == State::over || from != peer_) {
        courier_.send(from, {MessageKind::shutdown, id_});  // this end is over, or has another peer
      }
      return;
    case MessageKind::reject:
      if (state_ != State::connecting) return;
      courier_.leave(peer_);
      return fail(Status::refused, message.data);
    case MessageKind::shutdown:
      if (state_ == State::over) return courier_.leave(from);
      if (state_ != State::connected || from != peer_) return;
      state_ = State::ending;
      return try_to_end();
    case MessageKind::taken:
      if (state_ == State::connecting) wait_for(decode_address(message.data, from));
      return;
    case MessageKind::claim:
      if (state_ == State::over) courier_.send(from, {MessageKind::reject, id_});
      return;
    case MessageKind::request: return;  // only passive endpoints get requests
  }
}

void ConnectionEnd::try_to_end() {
  if (courier_.receiving(peer_)) return;
  courier_.send(peer_, {MessageKind::shutdown, id_});
  end(Status::ok);
}

void ConnectionEnd::wait_for(const SocketAddress& taker) {
  if (taker.empty() || taker == peer_) return;
  courier_.watch(taker);
  courier_.leave(peer_);
  peer_ = taker;
  courier_.send(taker, {MessageKind::claim, id_});
}

void ConnectionEnd::peer_lost(const PeerLoss& loss) {
  if (loss.peer != peer_) return;
  if (state_ == State::connected) end(loss.cause);
  // The engine also reports a peer that only refused the accept. Such a peer still has a session with this
  // side, and leave() ends it.
  if (state_ == State::over) return courier_.leave(loss.peer);
  if (state_ == State::ending) return end(Status::ok);
  if (state_ != State::connecting) return;
  // A peer that closes, ends or restarts before it answers counts as one that refuses.
  const bool refused = loss.orderly || loss.cause == Status::reset || loss.cause == Status::ended;
  fail(refused ? Status::refused : loss.cause, {});
}

void ConnectionEnd::established(ConstBytes data) {
  state_ = State::connected;
  listener_.connected(data);
}

void ConnectionEnd::fail(Status cause, ConstBytes data) {
  state_ = State::over;
  courier_.end_watch();
  courier_.cancel_receives();
  listener_.refused(cause, data);
}

void ConnectionEnd::end(Status cause) {
  state_ = State::over;
  courier_.end_watch();
  courier_.cancel_receives();
  listener_.ended(peer_, cause);
}

}  // namespace cluster::connection
