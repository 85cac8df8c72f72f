// The fast lane of a peer: a word that is null while the lane is closed. Short messages may take it while it is open, past
// all that the general road judges afresh for each message.
#pragma once

namespace cluster::carrier {

/// What stands at the end of an open lane; only the transport that opened it knows (shm/fast_lane.h).
class Lane {};

}  // namespace cluster::carrier
