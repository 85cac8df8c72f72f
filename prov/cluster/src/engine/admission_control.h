// Limits on what other processes may make this endpoint keep. Any process can open a session or a ring; each
// costs some 5 KB while it lasts, and something to remember it by afterwards. Peers in the address vector are
// always admitted; of unknown sources only `flows_max` are at a time, and twice as many are remembered.
//
// What is held for an unknown source while its session lasts, the session itself, frames behind a gap and answers that
// it does not fetch, is counted with each of its frames. All of them together may hold `unknown_bytes_max`: beyond it
// sources are dropped, the longest idle first, and of those that have spoken within kActive those that hold most.
//
// A peer that is not in the address vector is forgotten when nothing of it is left and its last session ended
// so long ago that no frame of it can arrive any more.
#pragma once

#include <cstddef>

#include "base/environment.h"
#include "engine/engine_settings.h"
#include "engine/peer_table.h"
#include "protocol/messenger.h"

namespace cluster::engine {

class AdmissionControl {
 public:
  AdmissionControl(const EngineSettings& settings, const Environment& environment, PeerTable& peers,
                   const protocol::Messenger& messenger)
      : settings_(settings), environment_(environment), peers_(peers), messenger_(messenger) {}

  /// True if a session or ring of this name may be opened; `open` is how many of the kind there are.
  bool admits(Time now, const SocketAddress& name, std::size_t open);
  /// A frame of the peer has come in its session. Unknown sources that hold too much, or try too many keys, are marked as
  /// failed.
  void account(Time now, Peer& peer) {
    if (peer.contact.held != 0 || peer.handle.value == protocol::kAddrNotAvail) [[unlikely]]
      account_unknown(now, peer);
  }
  /// Counts a message that waits with its carrier, and its sender with it, because the unexpected store is
  /// full. The first time is logged.
  void note_store_full();
  /// The same if this process has no memory for it.
  void note_no_memory();

 private:
  static constexpr std::size_t kPeersMin = 64;
  /// Looking for peers that can be forgotten takes long if there are many.
  static constexpr Duration kForgetInterval = 100ms;

  /// A source that has sent nothing for so long is dropped before one that has.
  static constexpr Duration kActive = 1s;
  /// Beyond the limit so much of it is freed: to look for those that hold it takes long.
  static constexpr std::size_t kFreedPart = 32;
  static constexpr Duration kWarningInterval = 60s;
  /// Remote accesses of an unknown source that are refused, before its session ends: a key is not to be found by trying.
  static constexpr std::size_t kRefusedAccessesMax = 64;

  void account_unknown(Time now, Peer& peer);
  void drop_unknown(Time now);
  bool forgettable(Time now, const Peer& peer) const;

  const EngineSettings& settings_;
  const Environment& environment_;
  PeerTable& peers_;
  const protocol::Messenger& messenger_;
  std::size_t forget_from_ = kPeersMin;  ///< with so many peers, those that can be forgotten are looked for
  Time next_forgetting_{};
  Time next_warning_{};
  bool logged_store_full_ = false;
  bool logged_no_memory_ = false;
};

}  // namespace cluster::engine
