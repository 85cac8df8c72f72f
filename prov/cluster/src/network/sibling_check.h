// A caller may be outside the address vector, although another endpoint of its process, its sibling, is
// inside (docs/protocol.md 2.7). This caller counts as a member, so its remote accesses are served. But any
// process can name a sibling in its opening. Therefore this endpoint asks the sibling whether the caller is
// an endpoint of the sibling's process. The sibling either confirms this or does not answer (EndpointRoster).
// Until the answer arrives, but at most for kLongestWait, this endpoint drops the caller's frames. Otherwise
// the caller's first access might be refused just because the answer arrives later.
//
// This endpoint sends a session number to the caller's address. It asks the sibling only after the caller has
// used that number (session_acceptor.h). A process that forges the caller's name never learns the number, so
// its opening causes no request to the sibling. Endpoints of one domain usually have the same IP address. So
// this endpoint asks only if the caller and the sibling have the same IP address. Therefore no other host can
// cause a request to the sibling. Requests and responses use the token bucket of all answers
// (answer_limiter.h).
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

  /// Returns true if the peer's flow must not get this frame yet, because the sibling has not answered.
  /// Precondition: the frame contains an opening (wire/opening.h).
  bool awaits_answer(Time now, RemotePeer& peer, const wire::FrameView& view);
  /// Called when the peer's flow has accepted a frame with an opening.
  void note_opening(RemotePeer& peer, const wire::FrameView& view);
  /// Called when a frame has arrived from a peer whose sibling has not answered yet. Asks the sibling if the
  /// next request is due.
  void review(Time now, RemotePeer& peer);

  /// Answers a peer that asks whether the peer's caller is an endpoint of this process.
  void on_request(Time now, const wire::FrameView& view, const link::Path& from);
  void on_response(const wire::FrameView& view, const SocketAddress& from);

 private:
  /// This time is long enough for a process on a busy machine to answer in the background.
  static constexpr Duration kLongestWait = 2s;
  /// The time between two requests for one session.
  static constexpr Duration kRequestInterval = 20ms;

  bool may_ask(const RemotePeer& peer);
  void ask(Time now, const RemotePeer& peer);

  const NetworkParts& parts_;
  PeerTable& peers_;
  SessionTable& sessions_;
  AnswerLimiter& limiter_;
};

}  // namespace cluster::network
