// Decides to which peer a frame of a flow belongs. Decides also what a frame outside any session may do: open
// a session, replace one, or end one.
//
// Any process can send a frame under any name. So a frame that names no session only draws an answer, and its
// data is dropped. The answer, a session number, goes to the address of the claimed name, where only the peer
// of that name receives it. A sender that then names the session and repeats its token has proved its name,
// and says which incarnation it is. Nobody can take that session away, because all callers under one name get
// the same number. A reset counts only if it quotes a frame in flight.
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

  /// Returns the peer whose flow takes the frame. A frame of a pending session puts that session into use:
  /// the session in use is closed, and its operations fail. Returns null if no flow takes the frame. The
  /// frame is then counted, and answered with a reset or an opening if one is due.
  RemotePeer* peer_for_frame(Time now, const wire::FrameView& view, const link::Path& from);
  /// The peer's flow has refused the frame because it belongs to another session.
  void refuse_other_incarnation(Time now, const RemotePeer& peer, const wire::FrameView& view,
                                const link::Path& from);
  void on_reset(Time now, const wire::FrameView& view, const link::Path& from);
  /// Logs once if the MTU in the peer's opening differs from this node's.
  void compare_mtu(const RemotePeer& peer, const wire::Opening& opening);
  SiblingCheck& siblings() { return siblings_; }

 private:
  /// Time between two warnings about openings from a wrong address, which any process can send.
  static constexpr Duration kSourceWarningInterval = 60s;

  void answer(Time now, const wire::FrameView& view, const link::Path& from);
  void refuse(Time now, const RemotePeer& peer, const wire::FrameView& view, const link::Path& from);
  RemotePeer* accept_by_cookie(Time now, const wire::FrameView& view, const link::Path& from);
  bool begin_pending(RemotePeer& peer, const wire::FrameView& view, const link::Path& from);
  bool reopen(Time now, RemotePeer& peer, std::uint64_t peer_begins);
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
