// A host's port at the switch, and the faults of the port. Each direction has faults of its own, because
// cables, drivers and queues often fail in one direction only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cluster::sim {

/// What may happen to a frame in one direction. If all members are zero, the cable is perfect.
struct Impairment {
  std::uint32_t loss = 0;  ///< of a million frames, as all integers here
  std::uint32_t duplicate = 0;
  std::uint32_t corrupt = 0;
  std::uint32_t reorder = 0;
  Duration reorder_by{0};       ///< longest delay of a frame that others overtake, and of a duplicate
  Duration jitter{0};           ///< longest delay that keeps the order of frames
  std::uint32_t late_copy = 0;  ///< frames of which a copy comes long after them
  Duration late_copy_by{0};     ///< longest delay of such a copy
  /// Losses in bursts (Gilbert and Elliott): how probable it is that a burst begins with a frame, that it
  /// ends with a frame, and that a frame in a burst is lost. A burst ends after kBurstMost at the latest.
  std::uint32_t burst_begin = 0;
  std::uint32_t burst_end = 0;
  std::uint32_t burst_loss = 0;

  bool any() const {
    return loss + duplicate + corrupt + reorder + late_copy + burst_begin != 0 || jitter.count() != 0;
  }
};

/// The longest burst of losses. In a longer burst, an endpoint that retransmits once a second could lose
/// dozens of frames, and would rightly declare its peer dead. So a longer loss must be a cut, of which the
/// oracle knows.
inline constexpr Duration kBurstMost = 100ms;

struct Port {
  std::uint64_t bits_per_second = 10'000'000'000;
  Duration delay = 2us;                         ///< of the cable and half of the switch, in each direction
  std::size_t send_queue_bytes = 512 * 1024;    ///< in the host; if it is full, the host must try again later
  std::size_t switch_queue_bytes = 512 * 1024;  ///< towards the host; if it is full, frames are lost
  std::size_t ring_frames = 1024;               ///< receive ring of the host
  std::size_t path_max = SIZE_MAX;              ///< longer frames of the host are lost, without any error
  Impairment out;
  Impairment in;
  bool powered = true;  ///< false: the host neither sends nor receives
  bool down = false;
  bool carrier = true;  ///< the host sees a carrier, unless the port is down
  /// The number of the move that gave the host its address; 0 for the first address. All addresses of a host
  /// differ only in their UDP ports.
  std::uint16_t moves = 0;
  bool icmp_filtered = false;  ///< no ICMP error of this host arrives
};

}  // namespace cluster::sim
