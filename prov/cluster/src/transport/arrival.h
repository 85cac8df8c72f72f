// The way of arriving segments to the messenger, the same for every transport: one after another, as long as the unexpected
// store has space. A segment that begins a message for which there is none stays where it is, with all behind it, and its
// sender waits.
//
// The same happens where there is no memory for a segment (protocol::NoMemoryYet) that has changed nothing. If it has changed
// something, one side would wait for an answer or a completion that never comes: so the peer is given up.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "protocol/messenger.h"
#include "transport/admission_control.h"
#include "transport/peer_table.h"

namespace cluster::transport {

class Arrivals {
 public:
  Arrivals(protocol::Messenger& messenger, PeerTable& peers, AdmissionControl& admission)
      : messenger_(messenger), peers_(peers), admission_(admission) {}

  /// Delivers at most `limit` of the segments from the peer that a source has; returns how many. `held`: the next one waits.
  ///
  ///   bool source.next()      shows the next segment, in source.segment and source.payload; false: there is none
  ///   bool source.taken()     it has been delivered; false: there is no other
  ///   bool source.hold(full)  it has to wait, for the store or (not `full`) for memory; false: it does not, and is dropped
  template <typename Source>
  std::size_t deliver(Peer& peer, Source& source, bool& held, std::size_t limit,
                      const protocol::ArrivalInfo& info = {}) {
    std::size_t count = 0;
    for (bool more = true; more && count < limit && source.next();) {
      const bool space = messenger_.matcher().ready(peer.channel, source.segment);
      if (space && messenger_.matcher().can_report() && arrive(peer, [&] {
            messenger_.arrive(peer.channel, source.segment, source.payload, info);
          })) [[likely]] {
        held = false;
        ++count;
        more = source.taken();
        continue;
      }
      if (!std::exchange(held, true)) space ? admission_.note_no_memory() : admission_.note_store_full();
      if (source.hold(!space)) break;
      held = false;
    }
    return count;
  }

  /// Calls `work`, which hands something of the peer to the messenger. False: it has done nothing, and is to be repeated.
  template <typename Work>
  bool arrive(Peer& peer, Work&& work) {
    try {
      work();
      return true;
    } catch (const protocol::NoMemoryYet&) {
      return false;
    } catch (const std::bad_alloc&) {
      peers_.mark_failed(peer, Status::no_memory);
      throw;
    }
  }
  /// What the peer has begins a segment that could be delivered now.
  bool ready(const Peer& peer, const wire::Segment& segment) {
    return messenger_.matcher().ready(peer.channel, segment) && messenger_.matcher().can_report();
  }

 private:
  protocol::Messenger& messenger_;
  PeerTable& peers_;
  AdmissionControl& admission_;
};

}  // namespace cluster::transport
