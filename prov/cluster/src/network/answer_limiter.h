// How many answers this endpoint gives to frames that belong to no session: answers to calls, resets, and questions and
// answers about siblings. Each answer costs a system call, and goes to a name that any host can have written there. So all of
// them share one token bucket (RFC 2697; RFC 9000 21.3, 21.9), members as well as unknown sources: kPerSecond tokens come back
// a second, and kBurst may be used at once, by a crowd of clients that start together. A sender that gets no answer asks again.
//
// In a flood (flood_watch.h) three things change:
//   - the bucket holds the tokens of one look at what waits aside, because hardly any of these frames is from a peer;
//   - a name that has spoken in its session a moment ago draws neither an answer nor a reset, because such a frame is most
//     probably forged. A peer that begins anew is silent in its old session, so it is answered after kJustHeard;
//   - unknown sources get no answer to frames that name a session or ask about siblings. A frame with the mark of this endpoint
//     always passes the kernel, and an answer would tell its sender that it has found the mark (link/thinning.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "link/thinning.h"
#include "network/network_parts.h"
#include "network/remote_peer.h"

namespace cluster::network {

class AnswerLimiter {
 public:
  static constexpr std::int64_t kPerSecond = 2'000;
  static constexpr std::int64_t kBurst = 8192;
  static constexpr Duration kJustHeard = 1s;

  AnswerLimiter(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// True if a call in this name is answered now. This and the following functions take a token if they return true.
  bool admits_call(Time now, const SocketAddress& name) {
    return !(flood(now) && speaks(now, name)) && admits(now);
  }
  /// True if a frame from there that names a foreign session is refused by a reset now.
  bool admits_reset(Time now, const SocketAddress& source) {
    return (!flood(now) || !speaks(now, source)) && admits_to(now, source);
  }
  /// True if a question from there about a sibling is answered now.
  bool admits_to(Time now, const SocketAddress& source) {
    return (!flood(now) || peers_.is_member_name(source)) && admits(now);
  }
  /// True if a caller's sibling may be asked now.
  bool admits(Time now) {
    next_ = std::max(next_, now - kBurst * kInterval);
    if (next_ > now) return false;
    next_ += kInterval;
    return true;
  }
  /// A flood goes on. Tokens saved before it are void.
  void note_flood(Time now) {
    flood_until_ = now + 2 * link::Thinning::kAsideInterval;  // the next look may come a little late
    next_ = std::max(next_, now - link::Thinning::kAsideInterval);
  }

 private:
  static constexpr Duration kInterval = Duration(1s) / kPerSecond;

  bool flood(Time now) const { return now < flood_until_; }
  bool speaks(Time now, const SocketAddress& name) const {
    const RemotePeer* const peer = parts_.find(peers_.find(name));
    return peer != nullptr && peer->flow != nullptr && peer->flow->handshake().knows_peer() &&
           now - peer->flow->liveness().heard_at() < kJustHeard;
  }

  const NetworkParts& parts_;
  PeerTable& peers_;
  Time next_{-kBurst * kInterval};  ///< when the next token is there; in the past as long as tokens are saved
  Time flood_until_{};
};

}  // namespace cluster::network
