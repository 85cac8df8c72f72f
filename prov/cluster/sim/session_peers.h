// The peers of the sessions of one process, as its frames show them. A frame that names one of our sessions
// and brings the sender's opening claims to come from that session's peer; a frame that we send to the
// session of that opening shows that the engine accepts the claim. From then on every frame that names the
// same session with another opening comes from the *wrong peer*: a process that has ended, or one that was
// not accepted. The engine must refuse it. To know which frame was refused, the engine is given such a frame
// alone in its turn, on any rail.
//
// A reset may say that the peer's session has ended before it was used. If the engine believes that, our
// session goes on with another one of the peer, and never returns to the one that has ended. Until the engine
// sends again, every peer may be the right one.
//
// Once the engine has acknowledged a frame of a peer's session, that session belongs to one of ours. If another
// of ours took it up, its messages would be delivered again.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "base/units.h"
#include "link/link.h"
#include "wire/admit.h"

namespace cluster::sim {

class SessionPeers {
 public:
  /// The engine is to read a frame. False: not in this turn.
  bool read(const wire::FrameView& frame, Time turn);
  /// The engine sends a frame. False: it takes up a session of a peer again that is over.
  bool sent(const link::OutFrame& frame);
  /// True if the engine has read a frame from the wrong peer since the last call.
  bool take_wrong_peer();

 private:
  bool is_wrong_peer(const wire::FrameView& frame) const;
  void on_reset(std::uint32_t refused);
  void on_opening_sent(std::uint32_t own);
  bool on_session_used(std::uint32_t own, std::uint32_t peer);

  /// Of each session of ours: the first session of a peer that named it.
  std::unordered_map<std::uint32_t, std::uint32_t> claimed_by_;
  /// Of each session of a peer: the one of ours that it named.
  std::unordered_map<std::uint32_t, std::uint32_t> claims_;
  /// Of each session of ours: the peer's session that the engine accepts.
  std::unordered_map<std::uint32_t, std::uint32_t> session_peers_;
  /// Of each session of a peer: the last one of ours that was with it; 0: it has ended.
  std::unordered_map<std::uint32_t, std::uint32_t> with_;
  std::unordered_set<std::uint32_t> acknowledged_;  ///< sessions of peers
  Time turn_{};
  bool some_read_ = false;  ///< in that turn
  bool wrong_peer_read_ = false;
  bool wrong_peer_ = false;
};

}  // namespace cluster::sim
