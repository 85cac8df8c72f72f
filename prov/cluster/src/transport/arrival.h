// Brings arriving segments to the messenger, for every transport: one after another, as long as the
// unexpected store has space. If it has none for a message, the segment that begins the message stays where
// it is. All segments behind it stay as well, and the sender waits.
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

  /// Delivers at most `limit` segments of a peer from `source`, and returns how many. Sets `held` if the next
  /// one waits.
  ///
  ///   bool source.next()   finds the next segment, as source.segment and source.payload; returns false if
  ///                        there is none
  ///   bool source.taken()  removes the segment, which is delivered; returns false if it was the last
  ///   bool source.hold()   keeps the segment, which must wait; returns false if the source drops it instead
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
