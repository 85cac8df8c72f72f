// Delivers arriving segments to the messenger, one after another. Every transport uses this class. If the
// unexpected store has no space for a message, the first segment of the message stays in its ring or flow.
// The following segments stay there as well, and the sender waits.
#pragma once

#include <cstddef>
#include <utility>

#include "protocol/messenger.h"
#include "transport/admission_control.h"
#include "transport/peer_table.h"

namespace cluster::transport {

class Arrivals {
 public:
  Arrivals(protocol::Messenger& messenger, PeerTable& peers, AdmissionControl& admission)
      : messenger_(messenger), peers_(peers), admission_(admission) {}

  /// Delivers at most `limit` segments of a peer from `source`, and returns how many it has delivered. Sets
  /// `held` to true if the next segment must wait for space in the unexpected store, else to false.
  ///
  ///   bool source.next()   puts the next segment into source.segment and source.payload; returns false if
  ///                        there is none
  ///   bool source.taken()  called after a segment was delivered, to remove it; returns false if it was the
  ///                        last one
  ///   bool source.hold()   called to keep a segment that must wait; returns false if the source drops the
  ///                        segment instead
  template <typename Source>
  std::size_t deliver(Peer& peer, Source& source, bool& held, std::size_t limit,
                      const protocol::ArrivalInfo& info = {}) {
    std::size_t count = 0;
    peers_.serve(peer, [&] {
      for (bool more = true; more && count < limit && source.next();) {
        if (messenger_.matcher().ready(peer.channel, source.segment)) [[likely]] {
          held = false;
          messenger_.arrive(peer.channel, source.segment, source.payload, info);
          ++count;
          more = source.taken();
          continue;
        }
        if (!std::exchange(held, true)) admission_.note_store_full();
        if (source.hold()) break;
        held = false;
      }
    });
    return count;
  }

 private:
  protocol::Messenger& messenger_;
  PeerTable& peers_;
  AdmissionControl& admission_;
};

}  // namespace cluster::transport
