// Which path carries the next frames. A path delivers after half of its shortest round trip and after
// everything that is in flight on it, at the rate that its window and round trip allow; the next frames take
// the one that will have delivered them first. So an idle flow uses the fastest path alone, and a busy one
// each in proportion to its speed.
//
// The best may not be allowed to send now (its window is full, or its pacer waits). Then another one carries
// the frames, unless it would deliver much later: a frame that is stuck on a slow path holds up everything
// behind it.
//
// These rules are about IP paths. A frame that leaves alone takes the EtherType path beside the chosen one,
// if that is validated and everything that went in a burst on the IP path before is known to have arrived:
// the two may overtake each other, which the receiver would take for a gap.
//
// With one IP path there is nothing to choose, and none of this is computed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "base/units.h"
#include "multipath/path_state.h"

namespace cluster::multipath {

struct DeliveryEstimate {
  bool up = false;
  bool known = false;         ///< measured, and not long ago; a path that is not known is tried
  Duration way{0};            ///< half of the shortest round trip
  Duration each{0};           ///< one more frame
  std::size_t in_flight = 0;  ///< frames
  std::size_t allowance = 0;  ///< frames that may leave now

  Duration delivery() const { return way + each * static_cast<std::int64_t>(in_flight + 1); }
};

/// The number of the path for the next frames; nothing if none may send or waiting for the best is better.
/// Pure.
std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> paths);

class PathScheduler {
 public:
  explicit PathScheduler(PathList& paths) : paths_(paths) {}

  /// So many frames may leave now on this IP path.
  struct Grant {
    std::size_t path = 0;
    std::size_t frames = 0;
  };
  /// A new turn begins: links that were full may take frames again.
  void begin_turn();
  Grant select(Time now) const;
  /// For a frame that was not acknowledged in time: another path than the one that carried it, if there is a good
  /// one.
  Grant select_other(Time now, std::size_t path) const;
  /// The path for one frame that leaves alone, is no retransmission and not longer than kEthertypeFrameMax: this
  /// IP path or the EtherType path beside it.
  std::size_t path_for_lone_frame(std::size_t ip);
  /// Frames left on this IP path that no later frame may overtake.
  void on_burst_sent(std::size_t ip, TransmissionNumber last) { paths_[ip].last_burst_end = last; }
  /// The path is left out in this turn. False: it has been before.
  bool on_link_full(std::size_t ip) { return !std::exchange(paths_[ip].link_full, true); }
  /// When some pacer allows more.
  Time resume_at(Time now) const;
  /// Frames that may be in flight on all validated paths together.
  std::size_t window() const;
  /// For frames that are sent several times or requested repeatedly: another validated path each time. If none is
  /// validated any more, those that once were.
  const link::Path& next_validated();
  /// True if a retransmission of a frame on this path leaves on another one.
  bool has_other(std::size_t path) const { return least_recent(path) != path; }

 private:
  DeliveryEstimate estimate(Time now, std::size_t ip) const;
  /// Validated paths first, then those that have ever been.
  int rank(std::size_t path) const;
  std::size_t least_recent(std::size_t except) const;

  static constexpr std::size_t kGrantMax = 8;  ///< frames to one path at once, where there are several

  PathList& paths_;
  std::size_t next_ = 0;  ///< for next_validated()
};

}  // namespace cluster::multipath
