// Finds out whether a caller outside the address vector belongs to a process that has another endpoint there,
// its sibling (docs/protocol.md 2.7). Such a caller counts as a member: its remote accesses are served. Any
// process can name a sibling in its opening. So this endpoint asks the sibling whether the caller is an
// endpoint of its process, and the sibling says yes or nothing (EndpointRoster). Until the answer comes, the
// caller's frames count as lost. Otherwise its first access could be refused just because the answer came
// later.
//
// The question is only about a caller that has used the session named to its address (session_acceptor.h). So
// no other process can use the answer, and an opening in any host's name draws no question. Endpoints of one
// process have one IP address, so no other host can draw a question. Requests and responses use the token
// bucket of all answers (answer_limiter.h).
#pragma once

#include <cstdint>

#include "network/answer_limiter.h"
#include "network/network_parts.h"
#include "network/session_table.h"
#include "transport/peer_table.h"
#include "wire/admit.h"

namespace cluster::network {

class SiblingCheck {
 public:
  SiblingCheck(const NetworkParts& parts, PeerTable& peers, SessionTable& sessions, AnswerLimiter& limiter);

  /// Returns true if the peer's flow must not see this frame with an opening yet, because the sibling has not
  /// answered.
  bool awaits_answer(Time now, RemotePeer& peer, const wire::FrameView& view);
  /// The peer's flow has accepted a frame with an opening.
  void note_opening(RemotePeer& peer, const wire::FrameView& view);
  /// A frame has come from a peer whose sibling has not answered yet.
  void review(Time now, RemotePeer& peer);

  /// Answers a peer that asks whether its caller is an endpoint of this process.
  void on_request(Time now, const wire::FrameView& view, const link::Path& from);
  void on_response(const wire::FrameView& view, const SocketAddress& from);

 private:
  /// Long enough for a process on a crowded machine to answer in the background.
  static constexpr Duration kLongestWait = 2s;
  /// Time between two requests for one session.
  static constexpr Duration kRequestInterval = 20ms;

  bool may_ask(const RemotePeer& peer);
  void ask(Time now, const RemotePeer& peer);

  const NetworkParts& parts_;
  PeerTable& peers_;
  SessionTable& sessions_;
  AnswerLimiter& limiter_;
};

}  // namespace cluster::network
