// The end of memory: what the provider does if the process has no memory left. This page is the whole policy.
//
//   1. A call of the application takes the memory that it needs before it changes anything, and returns
//      -FI_ENOMEM without it. A call that cannot do so undoes what it has changed and lets the exception
//      pass. An operation that has begun ends with that error instead.
//   2. If a turn of the engine finds no memory for the work of one peer, that peer is lost:
//      PeerTable::serve marks it with Status::no_memory. Its session or ring ends, and its operations end
//      with FI_ENOMEM. The other side notices it like any other loss. So no object must be consistent after
//      half an arrival, half an acknowledgement or half a timer: the object goes with its peer.
//      ControlSender likewise loses the peer for which it has no memory. A carrier may refuse a segment
//      without memory, as if the carrier were full; the protocol posts the segment again.
//   3. Work that belongs to no single peer waits for a later turn. EventLoop::run_once ends the turn, and
//      the next turn starts from the beginning. Frames that were read from a link are lost by then, as in
//      the network, and their senders retransmit them. A group belongs to many peers, so it also goes on in
//      a later turn. A collective operation fails its team, as if a member were lost.
//   4. A completion or event without memory is lost, and its queue tells the application so (FI_EOVERRUN).
//   5. What only saves time is omitted (an index, a buffer kept for reuse).
//
// Exceptions end at the doors to C (api/fid_object.h: guarded, api/endpoint.h: post, provider/entry.cc), at
// the progress thread (os/progress_thread.cc), and where a crypto library is tried (os/libcrypto.cc).
//
// docs/design/25-end-of-memory.md says why 2 and 4 are so harsh.
#pragma once

#include <new>

namespace cluster {

/// Does `work`. Returns false if the work found no memory. Nothing undoes what it had changed by then.
template <typename Work>
bool enough_memory_for(Work&& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace cluster
