// Sends the frames that find out whether a path leads to the peer (RFC 9000 section 8.2): to the peer's
// engine while the path is not validated, later to its probe responder, which answers even if the engine is
// busy. They belong to no sequence and are not retransmitted; when one is due is the path's matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "link/link.h"
#include "multipath/path_manager.h"
#include "multipath/path_mtu.h"
#include "reliability/handshake.h"
#include "wire/frame.h"

namespace cluster::reliability {

class PathProber {
 public:
  PathProber(const Handshake& handshake, multipath::PathManager& paths, const multipath::PathMtu& path_mtu)
      : handshake_(handshake), paths_(paths), path_mtu_(path_mtu) {}

  /// What the flow has just done.
  struct Turn {
    bool sent_any;       ///< frames left in this turn
    bool new_paths;      ///< paths were added in this turn
    std::uint64_t sent;  ///< frames of the flow so far
  };
  void send_challenges(Time now, link::Link& link, const Turn& turn);

 private:
  void challenge_paths(Time now, link::Link& link);
  void challenge_ethertype_paths(Time now, link::Link& link);
  void send(wire::FrameKind kind, std::size_t size, const link::Path& path, link::Link& link) const;

  /// Frames to a peer before its EtherType path is worth a challenge.
  static constexpr std::uint64_t kFramesBeforeEthertype = 16;

  const Handshake& handshake_;
  multipath::PathManager& paths_;
  const multipath::PathMtu& path_mtu_;
};

}  // namespace cluster::reliability
