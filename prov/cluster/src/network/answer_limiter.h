// Limits the rate of frames that this endpoint sends outside any session. These frames are answers to calls
// (openings that ask for a session), resets, and questions and answers about siblings. Each of them costs a
// system call and goes to an address that any host may have forged. Therefore all of them share one token
// bucket (RFC 2697; docs/protocol.md 2.2), whether the receiver is a member or an unknown source. A sender
// that gets no answer asks again.
//
// In a flood (docs/protocol.md 2.8) the link puts frames aside, and the endpoint reads them at intervals.
// During a flood, the bucket holds at most the tokens of one such interval. A peer that has just sent a frame
// in its session has no reason to call. A call under the name of this peer is most probably forged. During
// the flood this name gets neither an answer nor a reset. Unknown sources get no answer to frames that name a
// session or ask about siblings. Otherwise an unknown source could find the mark of members by trial
// (link/link.h: Thinning).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "link/link.h"
#include "network/network_parts.h"
#include "network/remote_peer.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::network {

class AnswerLimiter {
 public:
  static constexpr std::int64_t kPerSecond = 2'000;
  static constexpr std::int64_t kBurst = 8192;
  static constexpr Duration kJustHeard = 1s;

  AnswerLimiter(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// Returns true if this endpoint may answer a call under this name now. Like admits_to() and admits(), it
  /// takes a token if it returns true.
  bool admits_call(Time now, const SocketAddress& name) {
    return !(flood(now) && speaks(now, name)) && admits(now);
  }
  /// Answers a frame of a session that this endpoint does not have (RFC 9000 10.3: stateless reset), if a
  /// token is left and no flood forbids the answer. From the reset, the peers of a restarted process learn of
  /// the restart. `epoch`: see wire::ResetReason.
  void send_reset(Time now, const wire::FrameView& refused, const link::Path& to, wire::ResetReason reason,
                  std::uint64_t epoch) {
    if ((flood(now) && speaks(now, to.to)) || !admits_to(now, to.to)) return;
    link::send_frame(*parts_.link, wire::ControlFrame::reset(refused, reason, epoch).bytes(),
                     link::ip_path(to));
  }
  /// Returns true if this endpoint may answer a question about a sibling from `source` now.
  bool admits_to(Time now, const SocketAddress& source) {
    return (!flood(now) || peers_.is_member_name(source)) && admits(now);
  }
  /// Returns true if this endpoint may ask a caller's sibling now.
  bool admits(Time now) {
    next_ = std::max(next_, now - kBurst * kInterval);
    if (next_ > now) return false;
    next_ += kInterval;
    return true;
  }
  /// Records that a flood is in progress. Of the saved tokens, keeps only those of one interval.
  void note_flood(Time now) {
    // Two intervals, because the next read of the frames that were put aside may be a little late.
    flood_until_ = now + 2 * link::Thinning::kAsideInterval;
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
  Time next_{-kBurst * kInterval};  ///< when the next token is available; a past time if tokens are saved
  Time flood_until_{};
};

}  // namespace cluster::network
