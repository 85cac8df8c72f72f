// Which peer a frame of a flow belongs to, and what frames may do that no open session protects: open one,
// replace one, end one.
//
// Any process can send a frame under any name, so what one outside validated sessions may cause is limited: a
// session that no peer has addressed yet touches no memory (NetworkReceiver) and is forgotten when its peer
// stays idle (SessionTable); a claim to be a peer's next incarnation opens a pending session only, one per
// peer and kChallengeTimeout; a reset counts only if it quotes a frame in flight.
#pragma once

#include <cstdint>

#include "engine/admission_control.h"
#include "engine/control_frames.h"
#include "engine/engine_parts.h"
#include "engine/peer_closer.h"
#include "engine/session_table.h"
#include "engine/tx_scheduler.h"

namespace cluster::engine {

class SessionAcceptor {
 public:
  SessionAcceptor(const EngineParts& parts, PeerTable& peers, AdmissionControl& admission, TxScheduler& tx,
                  SessionTable& sessions, PeerCloser& closer);

  /// The peer whose flow takes the frame. A frame of session 0 may open a session for its sender. One of a
  /// pending session validates it: the session in use is closed, and its operations fail. Null if no flow
  /// takes the frame, which then has been counted, and answered with a reset or a challenge if one is due.
  Peer* peer_for_frame(Time now, const wire::FrameView& view, const link::Path& from);
  /// The peer's flow has refused the frame as not of its session.
  void refuse_other_incarnation(Time now, const Peer& peer, const wire::FrameView& view,
                                const link::Path& from);
  void on_reset(Time now, const wire::FrameView& view, const link::Path& from);
  /// Logs once if the MTU in the peer's opening is not that of this node.
  void compare_mtu(const Peer& peer, const wire::Opening& opening);

 private:
  /// After so long another claim to be the peer's next incarnation is challenged: the first may have been
  /// forged.
  static constexpr Duration kChallengeTimeout = 1s;
  /// Between two warnings of openings from a wrong address, which any process can send.
  static constexpr Duration kSourceWarningInterval = 60s;

  Peer* open(Time now, const wire::FrameView& view, const link::Path& from);
  Peer* accept(Time now, Peer& peer, const wire::FrameView& view, const link::Path& from);
  Peer* refuse(Time now, const Peer& peer, const wire::FrameView& view, const link::Path& from);
  void challenge(Time now, Peer& peer, const wire::FrameView& view, const link::Path& from);
  bool reopen(Time now, Peer& peer, std::uint64_t peer_begins);
  static bool sent_from_own_address(const wire::FrameView& view, const link::Path& from);
  void warn_of_source(Time now, const SocketAddress& name, const SocketAddress& source);
  SocketAddress name_of(const wire::FrameView& view);

  const EngineParts& parts_;
  PeerTable& peers_;
  AdmissionControl& admission_;
  TxScheduler& tx_;
  SessionTable& sessions_;
  PeerCloser& closer_;
  ResetSender resets_;
  bool logged_mtu_ = false;
  Time next_source_warning_{};
};

}  // namespace cluster::engine
