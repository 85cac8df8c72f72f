// The end of memory: what the provider does where the process has no memory left. This page is the whole policy; nothing else in
// the source handles std::bad_alloc but the doors to C (api/fid_object.h: guarded, provider/entry.cc).
//
//   1. A call of the application takes what it needs before it changes anything, and returns -FI_ENOMEM. An operation that has
//      begun by then ends with that error instead.
//   2. In a turn of the engine, work for one peer that finds no memory costs that peer: PeerTable::serve marks it as lost with
//      Status::no_memory. Its session or ring ends, its operations end with FI_ENOMEM, and the other side learns of it as of any
//      other loss. So no object has to be consistent after half of an arrival, an acknowledgement or a timer: it goes with its
//      peer. What the protocol says to a peer in the midst of other things loses it likewise (ControlSender). Only a carrier may
//      refuse a segment for want of memory, as if it were full; the protocol posts the segment again.
//   3. Work of no peer is left for a later turn: EventLoop::run_once ends the turn, and the next one begins from the start. What
//      has been read from a link by then is lost like a frame of the network, and its sender sends it again. A group, which
//      belongs to many peers, goes on in a later turn as well. A collective operation fails its team, as if a member were lost.
//   4. A completion or event for which there is no memory is lost, and its queue tells the application so (FI_EOVERRUN).
//   5. What only makes something faster is done without (an index, a buffer kept for reuse).
//
// Why so harsh in 2 and 4: docs/design/25-end-of-memory.md.
#pragma once

#include <new>

namespace cluster {

/// Does `work`. False: it found no memory, and what it has changed by then is changed.
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
