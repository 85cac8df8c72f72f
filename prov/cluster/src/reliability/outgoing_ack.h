// What this side acknowledges with the frames of one transmit(): a value, taken from the receive window and
// the acknowledgement scheduler, that every outgoing frame carries as far as it has space.
//
//   header   every frame before `ack` has arrived, the largest transmission that has, and how long ago
//   block    the ranges beyond a gap (SACK, RFC 2018), and how many frames came although they were here: the
//            peer's spurious retransmissions (D-SACK, RFC 2883)
//
// Invariant: a frame without space for the ranges acknowledges nothing, since `ack` and the largest
// transmission alone would say that everything between them is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "reliability/ack_scheduler.h"
#include "reliability/receive_window.h"
#include "wire/ack.h"
#include "wire/frame.h"

namespace cluster::reliability {

/// How much of the acknowledgement a frame carries.
enum class AckIncluded : std::uint8_t { none, header, block };

class OutgoingAck {
 public:
  OutgoingAck(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals);

  /// The frames that carry it leave at `now`, not when it was made.
  void set_departure(Time now);

  struct Fit {
    AckIncluded included;
    std::size_t block_bytes;
  };
  /// What a frame with so many bytes left carries; `bare`: it has no segments.
  Fit fit(std::size_t free_bytes, bool bare) const;
  void write(wire::FrameHeader& header) const;
  /// Only if fit() says that the block is included.
  std::size_t write_block(std::byte* out) const { return wire::encode(*block_, out); }
  /// Frames of the peer that arrived although they were here, in the block.
  std::uint32_t spurious() const { return block_ ? block_->spurious : 0; }

 private:
  bool any_;            ///< a frame has arrived that can be acknowledged
  bool gap_;            ///< ranges must go with it
  bool spurious_news_;  ///< the peer does not know the number of spurious retransmissions yet
  Sequence ack_;
  TransmissionNumber largest_acked_;  ///< largest transmission that has arrived...
  Time largest_acked_at_{};           ///< ...and when
  std::uint16_t delay_ = 0;
  std::optional<wire::Ack> block_;
};

}  // namespace cluster::reliability
