// Decides which peer a frame of a flow belongs to. It also decides whether a frame outside any session opens,
// replaces, or ends a session.
//
// Any process can send a frame under any name. So a frame that names no session only gets an answer, and its
// data is dropped. The answer goes to the address of the claimed name, where only the peer of that name
// receives it. The answer carries a session number and a token. A sender that names the session and repeats
// this token has proved its name. The opening of this frame shows which incarnation of the peer has sent it.
// A forged call creates no further session, because all callers under one name get the number of the peer's
// session or of its pending session. (While the table is crowded, an unknown caller gets a number that is
// bound to its own opening: SessionSecrets::cookie_for.) A reset counts only if it quotes a frame in flight.
#pragma once

#include <cstdint>

#include "network/answer_limiter.h"
#include "network/network_parts.h"
#include "network/session_table.h"
#include "network/sibling_check.h"
#include "network/tx_scheduler.h"
#include "transport/admission_control.h"

namespace cluster::network {

class SessionAcceptor {
 public:
  SessionAcceptor(const NetworkParts& parts, PeerTable& peers, transport::AdmissionControl& admission,
                  TxScheduler& tx, SessionTable& sessions, PeerReach& reach, AnswerLimiter& answers);

  /// Returns the peer whose flow takes the frame. If the frame belongs to a pending session, closes the
  /// session in use, so that its operations fail, and replaces it by the pending session. Returns null if no
  /// flow takes the frame. In this case the function has counted the frame, and has answered it with a reset
  /// or an opening if necessary.
  RemotePeer* peer_for_frame(Time now, const wire::FrameView& view, const link::Path& from);
  /// Called when the peer's flow has refused the frame. If the frame is from another incarnation, answers it
  /// with a reset.
  void refuse_other_incarnation(Time now, const RemotePeer& peer, const wire::FrameView& view,
                                const link::Path& from);
  /// Answers a challenge. If the challenge comes from the peer of the session that it names, the answer is a
  /// response. If there is no such session, the answer is a reset.
  void on_path_challenge(Time now, const wire::FrameView& view, const link::Path& from);
  void on_reset(Time now, const wire::FrameView& view, const link::Path& from);
  /// Logs once if the MTU in the peer's opening differs from this node's.
  void compare_mtu(const RemotePeer& peer, const wire::Opening& opening);
  SiblingCheck& siblings() { return siblings_; }

 private:
  /// The shortest time between two warnings about openings from a wrong address. Any process can send such
  /// openings.
  static constexpr Duration kSourceWarningInterval = 60s;

  static bool names_closed_session(const RemotePeer& peer, const wire::FrameView& view);
  void answer(Time now, const wire::FrameView& view, const link::Path& from);
  void refuse(Time now, const RemotePeer& peer, const wire::FrameView& view, const link::Path& from);
  void refuse_unknown_session(Time now, const wire::FrameView& view, const link::Path& from);
  RemotePeer* accept_by_cookie(Time now, const wire::FrameView& view, const link::Path& from);
  bool begin_pending(RemotePeer& peer, const wire::FrameView& view, const link::Path& from);
  bool reopen(Time now, RemotePeer& peer, std::uint64_t peer_begins);
  void refuse_source(Time now, const wire::FrameView& view, const link::Path& from);
  void warn_of_source(Time now, const SocketAddress& name, const SocketAddress& source);
  SocketAddress name_of(const wire::FrameView& view);

  const NetworkParts& parts_;
  PeerTable& peers_;
  transport::AdmissionControl& admission_;
  TxScheduler& tx_;
  SessionTable& sessions_;
  PeerReach& reach_;
  AnswerLimiter& answers_;
  SiblingCheck siblings_;
  bool logged_mtu_ = false;
  Time next_source_warning_{};
};

}  // namespace cluster::network
