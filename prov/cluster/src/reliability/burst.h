// The frames that a flow hands to its link in one call, and what lies in front of their payload. All flows of an engine build
// their bursts in the same one, one after the other: it is some 36 KB, too large for the stack of an application's thread.
#pragma once

#include <array>

#include "link/link.h"
#include "reliability/outgoing_ack.h"
#include "reliability/session_frame.h"

namespace cluster::reliability {

struct Burst {
  link::OutBurst out;
  std::array<AckIncluded, link::kBurstMax> carried{};     ///< by each frame
  std::array<RunEncoder::Front, link::kBurstMax> fronts;  ///< of frames in runs; left as they are until then
};

}  // namespace cluster::reliability
