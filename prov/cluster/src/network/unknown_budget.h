// Limits the memory for all unknown sources together to `unknown_bytes_max`. For each unknown source, the
// budget counts the session, received frames behind a gap, and answers that the source has not acknowledged.
// With each frame from a source, the budget counts the memory of this source anew. If the sum exceeds the
// limit, the budget drops sources. It drops idle sources first, beginning with the source that has been idle
// longest. Then it drops active sources, beginning with the source that holds most.
#pragma once

#include <cstddef>
#include <utility>

#include "network/network_parts.h"
#include "network/remote_peer.h"

namespace cluster::network {

class UnknownBudget {
 public:
  UnknownBudget(const NetworkParts& parts, PeerTable& peers) : parts_(parts), peers_(peers) {}

  /// Called when a frame of the peer has arrived. If the unknown sources hold too much, marks some of them as
  /// failed. Also marks a source as failed if it has tried too many keys.
  void account(Time now, RemotePeer& remote) {
    if (remote.held != 0 || remote.common.handle.value == protocol::kAddrNotAvail) [[unlikely]]
      account_unknown(now, remote);
  }
  /// Called when the peer's session is over.
  void release(RemotePeer& remote) { set_held(remote, 0); }

 private:
  /// The budget drops sources that have been silent for this time before active ones.
  static constexpr Duration kActive = 1s;
  /// When the limit is exceeded, the budget drops sources until the limit divided by this number is free. The
  /// search for sources to drop takes long, and must not be necessary again soon.
  static constexpr std::size_t kFreedPart = 32;
  /// After this many refused remote accesses, the session of an unknown source ends, so that the source
  /// cannot find a key by trial.
  static constexpr std::size_t kRefusedAccessesMax = 64;

  void set_held(RemotePeer& remote, std::size_t bytes) {
    bytes_ += bytes - std::exchange(remote.held, bytes);
  }
  void account_unknown(Time now, RemotePeer& remote);
  void drop_unknown(Time now);

  const NetworkParts& parts_;
  PeerTable& peers_;
  std::size_t bytes_ = 0;  ///< bytes held for all unknown sources together
  bool logged_ = false;    ///< the log has reported dropped sources
};

}  // namespace cluster::network
