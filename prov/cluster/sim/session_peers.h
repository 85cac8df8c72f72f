// Who the sessions of one process have turned out to be with, as a bystander sees it: a frame that names a
// session of ours and brings the peer's opening claims to be from its partner, and what is sent to the
// session in that opening shows that the engine believes it. From then on whatever names the same session
// with another opening comes from an incarnation that is over, or from one that has not been introduced: a
// *stranger*, whose frame must be refused. So that there is no doubt which frame was refused, a stranger's
// is the only one that the engine is given in its turn, on any rail.
//
// And a session of a peer's is had once: who answers a late copy of its first words when it is over hands on
// again what they brought.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/units.h"
#include "link/link.h"
#include "wire/admit.h"

namespace cluster::sim {

class SessionPeers {
 public:
  /// The engine is to look at a frame. False: not in this turn.
  bool read(const wire::FrameView& frame, Time turn);
  /// The engine sends one. False: it begins a session of a peer's again that it has had before.
  bool sent(const link::OutFrame& frame);
  /// True if what it has read since this was asked last was a stranger's.
  bool take_wrong_peer();

 private:
  bool is_wrong_peer(const wire::FrameView& frame) const;

  std::unordered_map<std::uint32_t, std::uint32_t>
      claimed_by_;  ///< a session of ours: the first that named it
  std::unordered_map<std::uint32_t, std::uint32_t>
      claims_;  ///< a session of a peer: the one of ours it named
  std::unordered_map<std::uint32_t, std::uint32_t>
      session_peers_;                                     ///< of ours: the peer's that the engine believes
  std::unordered_map<std::uint32_t, std::uint32_t> had_;  ///< of a peer: ours that was with it
  Time turn_{};
  bool some_read_ = false;  ///< in that turn
  bool wrong_peer_read_ = false;
  bool wrong_peer_ = false;
};

}  // namespace cluster::sim
