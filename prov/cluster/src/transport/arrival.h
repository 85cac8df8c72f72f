// The way of arriving segments to the messenger, the same for every transport: one after another, while the
// unexpected store has space. A segment that begins a message without space stays where it is, and so do all
// behind it. Its sender waits.
//
// The same happens where there is no memory for a segment (protocol::NoMemoryYet) that has changed nothing.
// If it has changed something, one side would wait for an answer or a completion that never comes: so the
// peer is given up.
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

  /// Delivers at most `limit` segments of a peer from `source`, and returns how many. Sets `held` if the next
  /// one waits.
  ///
  ///   bool source.next()      shows the next segment in source.segment and source.payload; false: none
  ///   bool source.taken()     the segment has been delivered; false: there is no other
  ///   bool source.hold(full)  the segment has to wait for the store or (not `full`) for memory; false: it is
  ///                           dropped instead
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

  /// Calls `work`, which gives the messenger data of the peer. Returns false if the work did nothing and has
  /// to be repeated.
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
  /// True if the peer's next segment can be delivered now.
  bool ready(const Peer& peer, const wire::Segment& segment) {
    return messenger_.matcher().ready(peer.channel, segment) && messenger_.matcher().can_report();
  }

 private:
  protocol::Messenger& messenger_;
  PeerTable& peers_;
  AdmissionControl& admission_;
};

}  // namespace cluster::transport
