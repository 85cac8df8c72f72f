// Limits the number of unknown sources that this endpoint keeps. An unknown source is a process that opens a
// session or a ring, but is no known peer (PeerTable::known). Any process can open one. A session costs some
// 5 KB while it is open, and afterwards an entry in the peer table. Known peers are always admitted. An
// unknown source may open a session only while fewer than `flows_max` sessions are open. The same limit
// applies to rings. The source gets an entry in the peer table only while the table has fewer than
// 2 * `flows_max` entries. (network/unknown_budget.h limits the bytes of unknown sources.)
//
// A search deletes the entry of a peer outside the address vector once nothing refers to the peer, and no
// more frames of its last session can arrive. The search runs when an unknown source needs an entry and the
// table is large.
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

  /// Returns true if the endpoint with this name may open a session or a ring. `open`: the number of open
  /// sessions or, if the endpoint wants a ring, of open rings.
  bool admits(Time now, const SocketAddress& name, std::size_t open);
  /// Counts a message that cannot be stored because the unexpected store is full. The message stays in its
  /// ring or flow, and its sender waits. The first such message is logged.
  void note_store_full();

 private:
  static constexpr std::size_t kPeersMin = 64;
  /// The shortest time between two searches for peers to forget. A search takes long if there are many peers.
  static constexpr Duration kForgetInterval = 100ms;

  bool forgettable(Time now, const Peer& peer) const;

  const EngineSettings& settings_;
  const Environment& environment_;
  PeerTable& peers_;
  const protocol::Messenger& messenger_;
  /// The search for peers to forget runs only if the table has at least this many peers, or is full.
  std::size_t forget_from_ = kPeersMin;
  Time next_forgetting_{};
  bool logged_store_full_ = false;
};

}  // namespace cluster::transport
