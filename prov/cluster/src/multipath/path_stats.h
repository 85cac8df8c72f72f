// What is known of one path to the peer at one moment: a copy for reports, which takes no part in what the
// flow does.
#pragma once

#include <cstddef>

#include "base/address.h"
#include "base/units.h"

namespace cluster::multipath {

/// Of an IP path, the EtherType path beside it included.
struct PathStats {
  std::size_t link = 0;    ///< by which of this side's links
  SocketAddress to;        ///< the peer's address there
  Duration round_trip{0};  ///< smoothed, of the one that was used last; 0: not measured yet
  Duration reply_longest{0};
  std::size_t window = 0;     ///< frames that may be in flight at once...
  std::size_t in_flight = 0;  ///< ...and those that are
  bool up = true;             ///< validated
  bool ethertype = false;     ///< frames that leave alone take the EtherType path
};

}  // namespace cluster::multipath
