// One end of a connection (FI_EP_MSG): the states through which an endpoint passes.
//
//   idle -- connect() --------> connecting -- accept arrives --> connected     the active side
//   idle -- set_asker() ------> asked ------- accept() --------> connected     the passive side
//   connected ---- shut_down(), shutdown arrives, the peer is lost --> over
//   connecting --- shut_down(), reject arrives, the peer is lost ----> over
//
// The active side sends a request to the address of a passive endpoint. The accept comes from another
// endpoint, which the accepting application has opened for this connection. That endpoint is the peer from
// then on. The passive side counts as connected as soon as it has accepted, because what it sends follows its
// accept. So its application has the event before the active side can ask for a further connection, as with
// TCP. If the active side has given up, it answers the accept with a shutdown.
//
// This object needs no timers: the endpoint repeats lost frames, and reports a peer that does not answer.
#pragma once

#include "connection/courier.h"

namespace cluster::connection {

/// Learns what becomes of a connection. Called under the engine's lock.
class ConnectionListener {
 public:
  virtual ~ConnectionListener() = default;
  /// `data`: what the accepting application has sent along; empty on the passive side.
  virtual void connected(ConstBytes data) = 0;
  /// The attempt has failed. `data`: what the rejecting application has sent along.
  virtual void refused(Status cause, ConstBytes data) = 0;
  /// The connection has ended. `cause`: Status::ok if one side has shut it down, else why the peer was lost.
  virtual void ended(const SocketAddress& peer, Status cause) = 0;
};

class ConnectionEnd {
 public:
  enum class State : std::uint8_t { idle, connecting, asked, connected, over };

  ConnectionEnd(Courier& courier, ConnectionListener& listener) : courier_(courier), listener_(listener) {}

  /// Begins an attempt of the active side. The state must be idle.
  void connect(const SocketAddress& passive, std::uint64_t id, ConstBytes data);
  /// Makes this the end of the passive side. The state must be idle.
  void set_asker(const SocketAddress& asker, std::uint64_t id);
  /// Accepts the request. The state must be asked.
  void accept(ConstBytes data);
  /// Ends the connection, or the attempt. Returns false if there is none.
  bool shut_down();

  void arrived(const SocketAddress& from, const Message& message);
  void peer_lost(const PeerLoss& loss);

  State state() const { return state_; }
  /// The endpoint at the other end or, while the active side waits for an answer, the passive endpoint.
  const SocketAddress& peer() const { return peer_; }

 private:
  void established(ConstBytes data);
  void fail(Status cause, ConstBytes data);
  void end(Status cause);

  Courier& courier_;
  ConnectionListener& listener_;
  State state_ = State::idle;
  std::uint64_t id_ = 0;
  SocketAddress peer_;
};

}  // namespace cluster::connection
