// The state of a flow at one moment, for reports. It has a header of its own because the components that
// write reports do not include flow.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "multipath/path_manager.h"

namespace cluster::reliability {

struct FlowStats {
  std::vector<multipath::PathStats> paths;
  std::size_t frame_max = 0;        ///< bytes of the longest frame that the flow sends
  std::size_t queued = 0;           ///< frames that wait to be sent
  std::uint64_t sent = 0;           ///< frames sent, retransmissions included
  std::uint64_t retransmitted = 0;  ///< frames sent again
  std::uint64_t lost = 0;           ///< frames declared lost
  Time heard_at{};                  ///< time of the peer's last sign of life, or Time{}
  bool kernel_vouches = false;  ///< true if the peer is silent and its kernel says that the process exists
  std::size_t footprint = 0;    ///< bytes of memory held for the peer
};

}  // namespace cluster::reliability
