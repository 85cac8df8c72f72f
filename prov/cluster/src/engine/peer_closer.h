// The end of what this endpoint has with a peer: every operation under way ends with an error that names it,
// its session and its rings are closed. The peer's channel then serves its next incarnation.
#pragma once

#include "engine/engine_parts.h"
#include "engine/local_peers.h"
#include "engine/peer_table.h"
#include "engine/session_table.h"
#include "protocol/messenger.h"

namespace cluster::engine {

class PeerCloser {
 public:
  PeerCloser(const EngineParts& parts, PeerTable& peers, protocol::Messenger& messenger, LocalPeers& local,
             SessionTable& sessions)
      : parts_(parts), peers_(peers), messenger_(messenger), local_(local), sessions_(sessions) {}

  /// Not while a component iterates over peers; else mark_failed() of the peer table.
  void close(Peer& peer, Status status);
  void close_failed();
  /// Its rings end, to which nothing was written: another carrier follows.
  void leave_carrier(Peer& peer);
  /// Now, since something of the peer's next incarnation has come.
  void close_if_failed(Peer& peer);
  /// Where the setting asks for it: if no peer is left, and one of them was lost, receives from any sender are hopeless. Also
  /// for those that are posted later, as long as no peer returns.
  void end_abandoned();
  /// This endpoint closes: every peer is notified.
  void announce_close();

 private:
  void log_end(const Peer& peer, Status status, bool orderly);
  void report_loss(const Peer& peer, Status status);

  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  LocalPeers& local_;
  SessionTable& sessions_;
};

}  // namespace cluster::engine
