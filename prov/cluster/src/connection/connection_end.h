// One end of a connection (FI_EP_MSG): the states through which an endpoint passes.
//
//   idle -- connect() --------> connecting -- accept arrives --> connected     the active side
//   idle -- set_asker() ------> asked ------- accept() --------> connected     the passive side
//   connected ---- shutdown arrives --> ending -- no transfer from the peer is under way --> over
//   connected, ending --- shut_down(), the peer is lost -------------> over
//   connecting ---------- shut_down(), reject arrives, the peer is lost ----> over
//   asked --------------- shut_down(), which sends a reject ---------> over
//
// A side that receives a shutdown waits until no transfer from the peer is under way (Courier::receiving).
// Then that side answers with a shutdown. The side that began the shutdown keeps the session until this
// answer arrives, and then ends the session. When the session ends, all operations that are still under way
// end on both sides.
//
// The active side sends a request to the address of a passive endpoint. The accept comes from another
// endpoint, which the accepting application has opened for this connection. From then on, the accepting
// endpoint is the peer of the active side. The passive side counts as connected as soon as it has sent the
// accept, because all its later messages arrive after the accept. So the accepting application gets
// FI_CONNECTED before the active side learns of the accept, as with TCP. If the active side has given up, it
// answers the accept with a shutdown.
//
// While the active side waits, it always watches the endpoint that will answer. At first this is the passive
// endpoint. The message `taken` says that another endpoint has taken the request. From then on the active
// side watches that other endpoint, and sends it a claim. If an endpoint has taken the request, the passive
// endpoint sends `taken` before it closes. So if the passive endpoint closes without having sent `taken`, no
// endpoint will answer. The accepting application may wait with its answer as long as it likes. The attempt
// fails if the watched endpoint is lost or closes. This object needs no timers: the engine retransmits lost
// frames, and reports a peer that does not answer.
#pragma once

#include "connection/courier.h"

namespace cluster::connection {

/// Learns whether an attempt succeeds, and when the connection ends. The engine's lock is held during each
/// call.
class ConnectionListener {
 public:
  virtual ~ConnectionListener() = default;
  /// `data`: the private data of the accepting application; empty on the passive side.
  virtual void connected(ConstBytes data) = 0;
  /// The attempt has failed. `data`: the private data of the rejecting application, if it has rejected the
  /// request.
  virtual void refused(Status cause, ConstBytes data) = 0;
  /// The connection has ended, or this side has shut down the attempt. `cause`: Status::ok after a shutdown
  /// by either side, otherwise why the peer was lost.
  virtual void ended(const SocketAddress& peer, Status cause) = 0;
};

class ConnectionEnd {
 public:
  enum class State : std::uint8_t { idle, connecting, asked, connected, ending, over };

  ConnectionEnd(Courier& courier, ConnectionListener& listener) : courier_(courier), listener_(listener) {}

  /// Begins an attempt of the active side. The state must be idle.
  void connect(const SocketAddress& passive, std::uint64_t id, ConstBytes data);
  /// Makes this the end of the passive side. The state must be idle.
  void set_asker(const SocketAddress& asker, std::uint64_t id);
  /// Accepts the request. The state must be asked.
  void accept(ConstBytes data);
  /// Ends the connection, or the attempt. Returns false if there is neither.
  bool shut_down();

  void arrived(const SocketAddress& from, const Message& message);
  void peer_lost(const PeerLoss& loss);
  /// Called at the end of a turn while the state is `ending`. Ends the connection if no transfer from the
  /// peer is under way.
  void try_to_end();
  /// Returns true if a message with this id belongs to the connection or attempt of this end.
  bool expects(std::uint64_t id) const { return state_ != State::idle && id == id_; }

  State state() const { return state_; }
  /// The endpoint at the other end or, while the active side waits, the endpoint that will answer.
  const SocketAddress& peer() const { return peer_; }

 private:
  void wait_for(const SocketAddress& taker);
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
