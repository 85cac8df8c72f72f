// Limits how many unknown sources this endpoint keeps. Any process can open a session or a ring. Each costs
// some 5 KB while it lasts, and afterwards an entry in the peer table. Peers in the address vector are always
// admitted. At most `flows_max` unknown sources are open at a time, and twice as many are remembered.
// (network/unknown_budget.h limits their bytes.)
//
// A peer outside the address vector is forgotten when nothing refers to it and no frame of its last session
// can still arrive.
#pragma once

#include <cstddef>

#include "base/environment.h"
#include "protocol/messenger.h"
#include "transport/engine_settings.h"
#include "transport/peer_table.h"

namespace cluster::transport {

class AdmissionControl {
 public:
  AdmissionControl(const EngineSettings& settings, const Environment& environment, PeerTable& peers,
                   const protocol::Messenger& messenger)
      : settings_(settings), environment_(environment), peers_(peers), messenger_(messenger) {}

  /// True if a session or ring of this name may be opened. `open`: how many of the kind there are.
  bool admits(Time now, const SocketAddress& name, std::size_t open);
  /// Counts a message that waits with its carrier because the unexpected store is full; its sender waits too.
  /// The first time is logged.
  void note_store_full();

 private:
  static constexpr std::size_t kPeersMin = 64;
  /// The search for peers to forget takes long if there are many.
  static constexpr Duration kForgetInterval = 100ms;

  bool forgettable(Time now, const Peer& peer) const;

  const EngineSettings& settings_;
  const Environment& environment_;
  PeerTable& peers_;
  const protocol::Messenger& messenger_;
  /// From this number of peers on, the search for peers to forget runs.
  std::size_t forget_from_ = kPeersMin;
  Time next_forgetting_{};
  bool logged_store_full_ = false;
};

}  // namespace cluster::transport
