// What happens where there is no memory for something that has arrived (protocol::NoMemoryYet): it waits, in its flow or
// its ring, if it has changed nothing. Where it has, one of the two sides would wait for an answer or a completion that
// never comes: so the peer is given up.
#pragma once

#include <new>

#include "protocol/context.h"
#include "transport/admission_control.h"
#include "transport/peer_table.h"

namespace cluster::transport {

/// Calls arrive(). False: it has done nothing, and is to be repeated.
template <typename Arrive>
bool try_arrival(PeerTable& peers, AdmissionControl& admission, Peer& peer, Arrive&& arrive) {
  try {
    arrive();
    return true;
  } catch (const protocol::NoMemoryYet&) {
    admission.note_no_memory();
    return false;
  } catch (const std::bad_alloc&) {
    peers.mark_failed(peer, Status::no_memory);
    throw;
  }
}

}  // namespace cluster::transport
