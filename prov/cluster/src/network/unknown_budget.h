// Limits the memory that unknown sources can take: `unknown_bytes_max` for all of them together. It counts
// the session of such a source, its frames behind a gap, and answers that it does not fetch. The endpoint
// recounts with each frame of the source. Beyond the limit it drops sources, those idle longest first. Of
// those that have spoken within kActive it drops the largest first.
#pragma once

#include <cstddef>
#include <utility>

#include "network/network_parts.h"
#include "network/remote_peer.h"

namespace cluster::network {

class UnknownBudget {
 public:
  UnknownBudget(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// A frame of the peer has come. Marks an unknown source as failed if it holds too much or has tried too
  /// many keys.
  void account(Time now, RemotePeer& remote) {
    if (remote.held != 0 || remote.common.handle.value == protocol::kAddrNotAvail) [[unlikely]]
      account_unknown(now, remote);
  }
  /// The peer's session is over.
  void release(RemotePeer& remote) { set_held(remote, 0); }

 private:
  /// Sources that have been silent for this time are dropped before active ones.
  static constexpr Duration kActive = 1s;
  /// Once beyond the limit, this part of it is freed at once, because finding the sources takes long.
  static constexpr std::size_t kFreedPart = 32;
  /// Refused remote accesses of an unknown source before its session ends: a source must not find a key by
  /// trying.
  static constexpr std::size_t kRefusedAccessesMax = 64;

  void set_held(RemotePeer& remote, std::size_t bytes) {
    bytes_ += bytes - std::exchange(remote.held, bytes);
  }
  void account_unknown(Time now, RemotePeer& remote);
  void drop_unknown(Time now);

  const NetworkParts& parts_;
  PeerTable& peers_;
  std::size_t bytes_ = 0;  ///< held for all unknown sources together
  bool logged_ = false;    ///< the log has reported dropped sources
};

}  // namespace cluster::network
