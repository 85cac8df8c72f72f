// A host's port at the switch, and what is wrong with it. Everything is per direction, because cables,
// drivers and queues fail that way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cluster::sim {

/// What may happen to a frame in one direction; all zero is a perfect cable.
struct Impairment {
  std::uint32_t loss = 0;  ///< parts in a million, as all of these
  std::uint32_t duplicate = 0;
  std::uint32_t corrupt = 0;
  std::uint32_t reorder = 0;
  Duration reorder_by{0};       ///< at most so much later than its turn; also how late a duplicate comes
  Duration jitter{0};           ///< on top of the port's delay, in order
  std::uint32_t late_copy = 0;  ///< a copy comes too, long after the frame
  Duration late_copy_by{0};     ///< at most so late
  /// Losses in bursts (Gilbert and Elliott): the chances that a burst begins and ends with a frame, and
  /// of loss within one. It ends by itself after kBurstMost.
  std::uint32_t burst_begin = 0;
  std::uint32_t burst_end = 0;
  std::uint32_t burst_loss = 0;

  bool any() const {
    return loss + duplicate + corrupt + reorder + late_copy + burst_begin != 0 || jitter.count() != 0;
  }
};

/// A longer loss is a cut, and the oracle must know about it. A peer that retransmits once a second rightly
/// declares its peer dead after losing dozens of frames in a burst.
inline constexpr Duration kBurstMost = 100ms;

struct Port {
  std::uint64_t bits_per_second = 10'000'000'000;
  Duration delay = 2us;                         ///< cable and half of the switch, each direction
  std::size_t send_queue_bytes = 512 * 1024;    ///< in the host: full means "not now", never loss
  std::size_t switch_queue_bytes = 512 * 1024;  ///< towards the host: full means loss
  std::size_t ring_frames = 1024;               ///< receive ring of the host
  std::size_t path_max = SIZE_MAX;              ///< bytes: longer frames of the host are lost without a word
  Impairment out;
  Impairment in;
  bool powered = true;  ///< else the host says nothing, and takes nothing in
  bool down = false;
  bool carrier = true;  ///< what the host sees of the port, unless it is down
  /// How often the host's address was replaced. The simulation tells the addresses of a host by their ports.
  std::uint16_t moves = 0;
  bool icmp_filtered = false;  ///< ICMP errors of this host go nowhere
};

}  // namespace cluster::sim
