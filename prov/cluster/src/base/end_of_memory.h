// What the provider does if the process has no memory left. These rules are complete:
//
//   1. A call of the application allocates the memory that it needs before it changes anything. If it gets
//      none, it returns -FI_ENOMEM. A call that must change something before it allocates undoes the change
//      if memory runs out. Then the exception passes to the function that C code has called. If the operation
//      has already begun, the call returns 0, and the completion of the operation reports FI_ENOMEM.
//   2. If a turn of the engine gets no memory for the work of one peer, that peer is lost: PeerTable::serve
//      marks it with Status::no_memory. The session or ring of the peer ends, and operations with the peer
//      end with FI_ENOMEM. The other side notices the loss like any other loss. The next operation with the
//      peer opens a new session. The peer's objects are closed with the peer. Therefore they need not stay
//      consistent when memory runs out in the middle of an arrival, an acknowledgement or a timer.
//      ControlSender likewise loses a peer for which it gets no memory. Instead of losing the peer, a carrier
//      that gets no memory for a segment may refuse the segment, as a full carrier does. Then the protocol
//      posts the segment again later.
//   3. Work that belongs to no single peer waits for a later turn. EventLoop::run_once ends the turn, and the
//      next turn starts from the beginning. Frames that were already read from a link are lost, as if the
//      network had lost them, and their senders retransmit them. The work of a group also waits for a later
//      turn, because a group has many peers. If a collective operation gets no memory, its team fails, as if
//      a member were lost.
//   4. A completion or an event for which there is no memory is lost. Its queue reports the loss to the
//      application (FI_EOVERRUN).
//   5. If there is no memory for something that only saves time (an index, a buffer kept for reuse), the
//      provider works without it.
//
// Exceptions are caught where C code calls the provider (api/fid_object.h: guarded, api/endpoint.h: post,
// provider/entry.cc), in the progress thread (os/progress_thread.cc), and where a crypto library is tried
// (os/libcrypto.cc).
//
// docs/design/25-end-of-memory.md explains rules 2 and 4.
#pragma once

#include <new>

namespace cluster {

/// Calls `work`. Returns false if memory ran out during the call. Changes that `work` made before that are
/// not undone.
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
