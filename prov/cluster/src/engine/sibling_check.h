// Whether a caller that is not in the address vector belongs to a process that is: one of whose endpoints is. Then it
// counts as a member, whose remote accesses are taken.
//
// A caller's opening names a *sibling*, another endpoint of its process. Any process can write that, so the sibling is
// asked, at its own address and only if that is in the address vector: is this caller an endpoint of yours? It says yes or
// nothing (EndpointRoster). A yes counts for the name of the caller and the session that its opening names, so for as
// long as that session; the session was named to the address of that name alone (session_acceptor.h), so no
// other process can use what was said of this one.
//
//   caller            this endpoint              sibling of the caller
//     | opening ----------> |                              |
//     |                     | sibling_request -----------> |
//     |                     | <---------- sibling_response |
//     | opening, again ---> |                              |
//     | <---------- opening |                              |
//
// Nothing is kept while the sibling is asked: the 64 bits that it repeats are a keyed hash of the question and of the
// time, and the opening itself says how often it was sent. After kCallsAwaited times it is answered all the same; the
// caller is then an unknown source until the answer comes, which is asked for with its further frames, and so is one whose
// sibling is inserted later.
//
// Limits: a request is shorter than the frame that draws it and goes to members only; all together are limited as
// answers to unknown sources are. What is kept of an answer is one word in a table of kVerdicts, which a word
// of another caller may displace: then the sibling is asked again.
#pragma once

#include <cstdint>
#include <vector>

#include "base/siphash.h"
#include "engine/answer_limiter.h"
#include "engine/engine_parts.h"
#include "engine/peer_table.h"
#include "wire/admit.h"

namespace cluster::engine {

class SiblingCheck {
 public:
  SiblingCheck(const EngineParts& parts, PeerTable& peers);

  /// A frame that asks for a session. True if it shall not be answered yet, because its sibling has been asked.
  bool defers(Time now, const SocketAddress& caller, const wire::FrameView& call);
  /// A frame with an opening has come in the session that the opening names.
  void note_opening(Peer& peer, const wire::FrameView& view);
  /// A frame has come from a peer whose sibling has not answered.
  void review(Time now, Peer& peer);

  /// A peer asks whether a caller of its own is an endpoint of this process.
  void on_request(const wire::FrameView& view, const link::Path& from);
  void on_response(Time now, const wire::FrameView& view, const SocketAddress& from);

 private:
  /// Some 100 ms of repetitions: time for a process that computes to answer in the background.
  static constexpr std::uint32_t kCallsAwaited = 8;
  /// Between two requests for one session that was opened without an answer.
  static constexpr Duration kRequestInterval = 20ms;
  /// An answer is good as long as the interval of its request, and the next one.
  static constexpr Duration kInterval = 2s;
  static constexpr std::size_t kVerdicts = 1024;

  /// What is asked and answered.
  struct Question {
    const SocketAddress& caller;
    std::uint32_t session;  ///< named by the caller's opening
    const SocketAddress& sibling;
  };

  std::uint64_t hash(const Question& question, std::uint64_t purpose) const;
  std::uint64_t verdict_key(const Question& question) const;
  std::uint64_t challenge(std::uint64_t interval, const Question& question) const;
  bool confirmed(std::uint64_t key) const {
    return !verdicts_.empty() && verdicts_[key % kVerdicts] == key;
  }
  bool may_ask(const SocketAddress& sibling);
  void ask(Time now, const Question& question);

  const EngineParts& parts_;
  PeerTable& peers_;
  SipHash hash_;
  AnswerLimiter limiter_;
  std::vector<std::uint64_t> verdicts_;  ///< keys of what was confirmed; empty until the first
};

}  // namespace cluster::engine
