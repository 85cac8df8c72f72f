// What a connection and a passive endpoint need from the engine. The engine implements this interface
// (engine/connection_endpoint.h). The engine calls the connection and the passive endpoint under its lock.
#pragma once

#include "base/address.h"
#include "base/status.h"
#include "connection/connection_message.h"

namespace cluster::connection {

class Courier {
 public:
  virtual ~Courier() = default;
  /// Sends a message, now or as soon as the peer's carrier takes it. Messages to one endpoint arrive once and
  /// in order, or the peer is lost. A watched peer that refuses a request, a claim or an accept counts as
  /// lost. If the connection is over, its peer counts as lost in this case even though nobody watches it.
  virtual void send(const SocketAddress& to, const Message& message) = 0;
  /// Makes the engine check that this peer is alive, and no longer watch the previous one. When the peer is
  /// lost or closes, the engine calls peer_lost() once.
  virtual void watch(const SocketAddress& peer) = 0;
  virtual void end_watch() = 0;
  /// Makes this the peer to which the application's operations go, and from which its receives get messages.
  /// Receives that are already posted move to the peer.
  virtual void set_peer(const SocketAddress& peer) = 0;
  /// Ends the application's receives that no message has matched, with Status::canceled.
  virtual void cancel_receives() = 0;
  /// Returns true while a transfer from the peer is under way: a message that arrives in several parts, or a
  /// pull from the peer's memory.
  virtual bool receiving(const SocketAddress& peer) = 0;
  /// Called when there is nothing more to send to the peer. Ends the session with the peer. All operations
  /// with the peer that are under way end with Status::canceled.
  virtual void leave(const SocketAddress& peer) = 0;
};

/// How a watched peer was lost.
struct PeerLoss {
  SocketAddress peer;
  Status cause = Status::ok;
  bool orderly = false;  ///< the peer has closed its endpoint
};

}  // namespace cluster::connection
