// Which rail delivers the next frame first: pure. A rail delivers after half of its shortest round trip and
// after everything that travels on it already, at the rate its window and round trip stand for.
//
// The best may not be allowed to send now (its window is full, its pace held back). Then another one does,
// unless it is so much later that waiting is the shorter way: a frame that is stuck on a slow rail holds up
// everything behind it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/units.h"

namespace cluster::multipath {

struct DeliveryEstimate {
  bool up = false;
  bool known = false;         ///< measured, and not long ago; the others are tried, or nobody would find out
  Duration way{0};            ///< half of the shortest round trip
  Duration each{0};           ///< one more frame
  std::size_t in_flight = 0;  ///< frames
  std::size_t allowance = 0;  ///< frames that may leave now

  Duration delivery() const { return way + each * static_cast<std::int64_t>(in_flight + 1); }
};

/// The number of the rail for the next frames; nothing: none may send, or the best is worth waiting for.
std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> rails);

}  // namespace cluster::multipath
