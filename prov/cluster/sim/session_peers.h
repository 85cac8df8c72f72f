// The peers of the sessions of one process, as its frames show them. Below, our sessions are the sessions of
// this process. A frame that names one of our sessions and contains the sender's opening claims to come from
// the peer of our session. If the engine sends a frame to the session of that opening, it has accepted the
// claim. From then on, every frame that names our session with another opening comes from the *wrong peer*:
// from a process that has ended, or from one that was not accepted. The engine must refuse such a frame. It
// is given the frame alone in a turn, without other frames of any rail. Otherwise nobody could say which
// frame it refused.
//
// A reset may say that the peer's session ended before it was used. If the engine believes the reset, our
// session goes on with another session of the peer, and never returns to the one that has ended. Until the
// engine sends again, every peer may be the right one.
//
// Once the engine has acknowledged a frame of a peer's session, that session belongs to one of our sessions.
// If another of our sessions took it up, the peer's messages would be delivered again.
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
  /// The engine is about to read a frame. Returns false if it must not read the frame in this turn.
  bool read(const wire::FrameView& frame, Time turn);
  /// The engine sends a frame. Returns false if the frame takes up a session of a peer that is over.
  bool sent(const link::OutFrame& frame);
  /// Returns true if the engine has read a frame from the wrong peer since the last call.
  bool take_wrong_peer();

 private:
  bool is_wrong_peer(const wire::FrameView& frame) const;
  void on_reset(std::uint32_t refused);
  void on_opening_sent(std::uint32_t own);
  bool on_session_used(std::uint32_t own, std::uint32_t peer);

  /// For each session of ours: the first session of a peer that named it.
  std::unordered_map<std::uint32_t, std::uint32_t> claimed_by_;
  /// For each session of a peer: the session of ours that it named.
  std::unordered_map<std::uint32_t, std::uint32_t> claims_;
  /// For each session of ours: the peer's session that the engine accepts.
  std::unordered_map<std::uint32_t, std::uint32_t> session_peers_;
  /// For each session of a peer: the last session of ours that was with it; 0: it has ended.
  std::unordered_map<std::uint32_t, std::uint32_t> with_;
  std::unordered_set<std::uint32_t> acknowledged_;  ///< sessions of peers
  Time turn_{};
  bool some_read_ = false;  ///< a frame was read in this turn
  bool wrong_peer_read_ = false;
  bool wrong_peer_ = false;
};

}  // namespace cluster::sim
