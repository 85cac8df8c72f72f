// One way to the peer as whoever asks sees it: a value of the moment, made by rail_set.h. Nothing here
// takes part in what the flow does.
#pragma once

#include <cstddef>

#include "base/address.h"
#include "base/units.h"

namespace cluster::multipath {

struct PathStats {
  std::size_t link = 0;    ///< by which of this side's links
  SocketAddress to;        ///< the peer's address there
  Duration round_trip{0};  ///< smoothed; 0: not measured yet
  Duration reply_longest{0};
  std::size_t window = 0;     ///< frames that may travel at once...
  std::size_t in_flight = 0;  ///< ...and that do
  bool up = true;             ///< believed in
  bool shortcut = false;      ///< frames that go alone take the link's shortcut
};

}  // namespace cluster::multipath
