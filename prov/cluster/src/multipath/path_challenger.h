// Sends the challenges of path validation (RFC 9000 section 8.2). A path that has never worked is sent a
// path_challenge, which the peer's engine answers if it names the session; one that worked before a keep_alive
// of the same length, which the peer's responder answers even while the engine computes. An EtherType path is
// sent path_challenges only, and the engine answers over it: so both directions are seen to work.
//
// A challenge to an IP path is as long as the longest frame of the flow, because the path has to carry that.
// Challenges have no sequence and are not retransmitted; when one is due is the matter of the path
// (path_validator.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "link/link.h"
#include "multipath/path_manager.h"
#include "wire/frame.h"

namespace cluster::multipath {

class PathChallenger {
 public:
  explicit PathChallenger(PathManager& paths) : paths_(paths) {}

  /// What a challenge says and how long it is.
  struct Content {
    std::uint32_t session = 0;       ///< of this side; comes back with the answer
    std::uint32_t peer_session = 0;  ///< that is asked
    std::size_t frame_max = 0;
  };
  void challenge_ip_paths(Time now, link::Link& link, const Content& content);
  void challenge_ethertype_paths(Time now, link::Link& link, const Content& content);

  /// Frames to a peer before its EtherType path is worth a challenge.
  static constexpr std::uint64_t kFramesBeforeEthertype = 16;

 private:
  static void send(wire::FrameKind kind, std::size_t size, const link::Path& to, link::Link& link,
                   const Content& content);

  PathManager& paths_;
};

}  // namespace cluster::multipath
