// Finds out whether a caller that is not in the address vector belongs to a process that has another endpoint there. Such a caller
// counts as a member: its remote accesses are served.
//
// A caller's opening names a *sibling*, another endpoint of its process. Any process can write that. So this endpoint asks the sibling,
// at the sibling's address and only if that is in the address vector, whether the caller is an endpoint of its process. The sibling says
// yes or nothing (EndpointRoster). A yes counts for the name of the caller and the session that its opening names, so as
// long as that session lasts.
//
//   caller            this endpoint              sibling of the caller
//     | opening ----------> |                              |
//     | <---------- opening |                              |
//     | first frame ------> |                              |
//     |                     | sibling_request -----------> |
//     |                     | <---------- sibling_response |
//     | the same again ---> |                              |
//     | <--- acknowledgement|                              |
//
// The question is about a caller that has named the session which was named to its address alone (session_acceptor.h). So
// no other process can use what is said of this one, and openings in any host's name draw no question.
//
// While the sibling is asked, frames of the caller count as lost. The caller retransmits them, so its first access is not
// refused because the answer came after it. kLongestWait after the first such frame the endpoint takes them all the same. From
// then on the caller is an unknown source, and with each further frame the sibling is asked again. The same holds for a caller whose
// sibling is inserted later.
//
// The 64 bits that the sibling repeats are a keyed hash of the question and of the time. Limits: a request is shorter than
// the frame that draws it and goes to members only, one of a session in kRequestInterval. Requests and responses draw on
// the bucket of all answers (answer_limiter.h), and in a flood only members are answered.
// Endpoints of one process have one IP address: no other host can draw a question,
// nor use up what is left of that limit.
#pragma once

#include <cstdint>

#include "base/siphash.h"
#include "network/answer_limiter.h"
#include "network/network_parts.h"
#include "network/session_table.h"
#include "transport/peer_table.h"
#include "wire/admit.h"

namespace cluster::network {

class SiblingCheck {
 public:
  SiblingCheck(const NetworkParts& parts, PeerTable& peers, SessionTable& sessions, AnswerLimiter& limiter);

  /// A frame with an opening has come in a session of the peer, whose flow has not seen it. True if it shall not see it,
  /// because the sibling has not answered yet.
  bool awaits_answer(Time now, RemotePeer& peer, const wire::FrameView& view);
  /// The peer's flow has taken a frame with an opening.
  void note_opening(RemotePeer& peer, const wire::FrameView& view);
  /// A frame has come from a peer whose sibling has not answered.
  void review(Time now, RemotePeer& peer);

  /// A peer asks whether a caller of its own is an endpoint of this process.
  void on_request(Time now, const wire::FrameView& view, const link::Path& from);
  void on_response(Time now, const wire::FrameView& view, const SocketAddress& from);

 private:
  /// Time for a process on a crowded machine to answer in the background.
  static constexpr Duration kLongestWait = 2s;
  /// Between two requests for one session.
  static constexpr Duration kRequestInterval = 20ms;
  /// An answer is good as long as the interval of its request, and the next one.
  static constexpr Duration kInterval = 2s;

  std::uint64_t challenge(std::uint64_t interval, const RemotePeer& peer) const;
  bool may_ask(const RemotePeer& peer);
  void ask(Time now, const RemotePeer& peer);

  const NetworkParts& parts_;
  PeerTable& peers_;
  SessionTable& sessions_;
  SipHash hash_;
  AnswerLimiter& limiter_;
};

}  // namespace cluster::network
