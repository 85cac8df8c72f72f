// The way of arriving segments to the messenger, the same for every transport: one after another, as long as the unexpected
// store has space. A segment that begins a message for which there is none stays where it is, with all behind it, and its
// sender waits.
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
  ///   bool source.next()   shows the next segment, in source.segment and source.payload; false: there is none
  ///   bool source.taken()  it has been delivered; false: there is no other
  ///   bool source.hold()   it has to wait; false: it does not, and is dropped
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
