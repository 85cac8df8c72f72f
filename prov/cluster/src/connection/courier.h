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
  /// in order, or the peer is lost. If a watched peer refuses a request, a claim or an accept, the engine
  /// reports the peer as lost. After the end of a connection, this side no longer watches the peer. If the
  /// peer then refuses one of these messages, the engine still reports the peer as lost.
  virtual void send(const SocketAddress& to, const Message& message) = 0;
  /// Makes the engine check that `peer` is alive. The engine no longer watches the previous peer. When `peer`
  /// is lost or closes, the engine calls ConnectionEnd::peer_lost() once.
  virtual void watch(const SocketAddress& peer) = 0;
  virtual void end_watch() = 0;
  /// From now on the application's operations go to `peer`, and its receives take messages only from `peer`.
  /// This also holds for receives that are already posted.
  virtual void set_peer(const SocketAddress& peer) = 0;
  /// Ends, with Status::canceled, the application's receives that no message has matched.
  virtual void cancel_receives() = 0;
  /// Returns true while a transfer from the peer is under way: a message that arrives in several parts, or a
  /// pull from the peer's memory.
  virtual bool receiving(const SocketAddress& peer) = 0;
  /// Ends the session with the peer. The caller must have nothing more to send to the peer. All operations
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
