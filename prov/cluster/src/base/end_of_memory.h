// What the provider does if the process has no memory left. These rules are complete:
//
//   1. A function that the application calls allocates the memory that it needs before it changes anything.
//      If there is no memory, the function returns -FI_ENOMEM. Some functions must change something before
//      they allocate. If memory runs out, such a function undoes the change. The exception (std::bad_alloc)
//      then passes on to the function that C code has called. If the operation has already begun, the
//      function returns 0, and the completion of the operation reports FI_ENOMEM.
//   2. If a turn of the engine gets no memory for work that concerns one peer, that peer is lost:
//      PeerTable::serve marks the peer with Status::no_memory. The session or ring of the peer ends, and
//      operations with the peer end with FI_ENOMEM. The other side notices the loss like any other loss. The
//      next operation with the peer opens a new session. The peer's objects are closed with the peer.
//      Therefore they need not stay consistent when memory runs out in the middle of an arrival, an
//      acknowledgement or a timer. ControlSender marks a peer in the same way if there is no memory for a
//      segment to this peer. There is one alternative to losing the peer: a carrier that gets no memory for a
//      segment may refuse the segment, as a full carrier does. Then the protocol posts the segment again
//      later.
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
// Besides enough_memory_for(), these places end exceptions: the functions that C code calls
// (api/fid_object.h: guarded, provider/entry.cc), the progress thread
// (os/progress_thread.cc), the start of a helper thread (os/helper_thread.h), and the test of a crypto
// library (os/libcrypto.cc).
//
// docs/design/25-end-of-memory.md explains rules 2 and 4.
#pragma once

#include <new>

namespace cluster {

/// Calls `work`. Returns false if memory ran out during the call. Does not undo the changes that `work` made
/// until then.
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
