// Limits the memory that unknown sources can take here: `unknown_bytes_max` for all together. With each frame of such a source the
// endpoint counts its session, its frames behind a gap and the answers that it does not fetch. Beyond the limit the endpoint drops
// sources, the longest idle first. Of those that have spoken within kActive it drops the largest first.
#pragma once

#include <cstddef>
#include <utility>

#include "network/network_parts.h"
#include "network/remote_peer.h"

namespace cluster::network {

class UnknownBudget {
 public:
  UnknownBudget(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// A frame of the peer has come. An unknown source that holds too much, or tries too many keys, is marked as failed.
  void account(Time now, RemotePeer& remote) {
    if (remote.held != 0 || remote.common.handle.value == protocol::kAddrNotAvail) [[unlikely]]
      account_unknown(now, remote);
  }
  /// Its session is over.
  void release(RemotePeer& remote) { set_held(remote, 0); }

 private:
  /// A source that has sent nothing for so long is dropped before one that has.
  static constexpr Duration kActive = 1s;
  /// Beyond the limit this part of it is freed at once, because finding the sources takes long.
  static constexpr std::size_t kFreedPart = 32;
  /// Refused remote accesses of an unknown source before its session ends: it must not find a key by trying.
  static constexpr std::size_t kRefusedAccessesMax = 64;

  void set_held(RemotePeer& remote, std::size_t bytes) {
    bytes_ += bytes - std::exchange(remote.held, bytes);
  }
  void account_unknown(Time now, RemotePeer& remote);
  void drop_unknown(Time now);

  const NetworkParts& parts_;
  PeerTable& peers_;
  std::size_t bytes_ = 0;  ///< held for all of them together
  bool logged_ = false;    ///< that some were dropped
};

}  // namespace cluster::network
