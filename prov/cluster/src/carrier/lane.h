// The fast lane of a peer, as those see it who do not use it: a word that is null while the lane is closed.
#pragma once

namespace cluster::carrier {

/// What stands at the end of an open lane; only the transport that opened it knows (shm/fast_lane.h).
class Lane {};

}  // namespace cluster::carrier
