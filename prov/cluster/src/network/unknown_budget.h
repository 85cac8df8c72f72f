// What unknown sources may make this endpoint hold. While its session lasts, the session itself, frames behind a gap and
// answers that the source does not fetch are counted with each of its frames. All of them together may hold
// `unknown_bytes_max`: beyond it sources are dropped, the longest idle first, and of those that have spoken within kActive
// those that hold most.
#pragma once

#include <cstddef>
#include <utility>

#include "network/network_parts.h"
#include "network/remote_peer.h"

namespace cluster::network {

class UnknownBudget {
 public:
  UnknownBudget(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// A frame of the peer has come in its session. Unknown sources that hold too much, or try too many keys, are marked as
  /// failed.
  void account(Time now, RemotePeer& remote) {
    if (remote.held != 0 || remote.common.handle.value == protocol::kAddrNotAvail) [[unlikely]]
      account_unknown(now, remote);
  }
  /// Its session is over.
  void release(RemotePeer& remote) { set_held(remote, 0); }

 private:
  /// A source that has sent nothing for so long is dropped before one that has.
  static constexpr Duration kActive = 1s;
  /// Beyond the limit so much of it is freed: to look for those that hold it takes long.
  static constexpr std::size_t kFreedPart = 32;
  static constexpr Duration kWarningInterval = 60s;
  /// Remote accesses of an unknown source that are refused, before its session ends: a key is not to be found by trying.
  static constexpr std::size_t kRefusedAccessesMax = 64;

  void set_held(RemotePeer& remote, std::size_t bytes) {
    bytes_ += bytes - std::exchange(remote.held, bytes);
  }
  void account_unknown(Time now, RemotePeer& remote);
  void drop_unknown(Time now);

  const NetworkParts& parts_;
  PeerTable& peers_;
  std::size_t bytes_ = 0;  ///< held for all of them together
  Time next_warning_{};
};

}  // namespace cluster::network
