// The one place where bytes from the network are checked. What comes out of admit() is a frame of this
// protocol whose lengths and checksum are right; its users rely on that, and only have to check whether its
// session and sequence concern them.
#pragma once

#include <limits>
#include <optional>

#include "base/bytes.h"
#include "base/sequence.h"
#include "wire/ack.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/reset.h"

namespace cluster::wire {

/// Borrows from the bytes that were admitted.
struct FrameView {
  FrameKind kind = FrameKind::flow;
  std::uint8_t flags = 0;
  std::size_t length = 0;  ///< of the whole frame
  std::uint64_t ack_delay_ns = 0;
  std::uint32_t session = 0;
  Sequence sequence;
  TransmissionNumber transmission;
  Sequence ack;
  TransmissionNumber largest_acked;
  bool has_opening = false;
  Opening opening;
  ConstBytes rails;  ///< the opening's RailBlocks, if there is one; kinds sibling_...: the one of the caller
  bool has_ranges = false;
  Ack ranges;
  PartBlock part{};     ///< of what `segments` is a piece, if in_part()
  ResetBlock reset{};   ///< kind reset only
  ConstBytes segments;  ///< kind flow with flag sequenced, kind datagram: not empty

  /// Kinds keep_alive, path_challenge, sibling_request and their answers: what the answer repeats.
  std::uint64_t challenge() const { return transmission.value | std::uint64_t{ack.value} << 32; }
  bool sequenced() const { return (flags & frame_flag::kSequenced) != 0; }
  bool in_order() const { return (flags & frame_flag::kOrdered) != 0; }
  bool in_part() const { return (flags & frame_flag::kPart) != 0; }
  bool ack_now() const { return (flags & frame_flag::kAckNow) != 0; }
  bool acknowledges() const { return (flags & frame_flag::kAcknowledges) != 0; }
  /// Not if the delay is longer than the field can hold.
  bool knows_ack_delay() const {
    return acknowledges() && ack_delay_ns < std::numeric_limits<std::uint16_t>::max() * kAckDelayUnit;
  }
};

enum class Refusal : std::uint8_t {
  none,
  malformed,
  checksum,
  sealed,  ///< a sealed frame where there is no key
};

/// Reads the first frame in `bytes` into `out`. On success frames that follow begin at
/// bytes[out.length]. After a refusal the rest of `bytes` cannot be trusted either. A frame of the other
/// integrity is always refused. Of a sealed one seal/ has verified the trailer, which is left out here.
Refusal admit(ConstBytes bytes, FrameView& out, Integrity integrity = Integrity::checksum);

/// The CRC of a frame made of `pieces`, the first of which holds the whole FrameHeader.
std::uint32_t frame_checksum(std::span<const ConstBytes> pieces);

}  // namespace cluster::wire
