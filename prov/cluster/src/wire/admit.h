// The one place where bytes from the network are checked. admit() hands out a frame of this protocol whose lengths and checksum are
// right. Its users rely on that, and only check whether session and sequence concern them.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "base/bytes.h"
#include "base/sequence.h"
#include "wire/ack.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/segment.h"

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

  /// The random bits that an answer repeats, in kinds keep_alive, path_challenge, sibling_request and their answers.
  std::uint64_t challenge() const { return transmission.value | std::uint64_t{ack.value} << 32; }
  bool sequenced() const { return (flags & frame_flag::kSequenced) != 0; }
  bool in_order() const { return (flags & frame_flag::kOrdered) != 0; }
  bool in_part() const { return (flags & frame_flag::kPart) != 0; }
  bool ack_now() const { return (flags & frame_flag::kAckNow) != 0; }
  bool acknowledges() const { return (flags & frame_flag::kAcknowledges) != 0; }
  /// False if the delay is longer than the field can hold.
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

/// Reads the first frame in `bytes` into `out`. On success the next frame begins at bytes[out.length]. After a refusal the rest of `bytes`
/// cannot be trusted either. A frame of the other integrity is always refused. seal/ has verified the trailer of a sealed frame, which is
/// left out here.
Refusal admit(ConstBytes bytes, FrameView& out, Integrity integrity = Integrity::checksum);

/// The CRC of a frame made of `pieces`, the first of which holds the whole FrameHeader.
std::uint32_t frame_checksum(std::span<const ConstBytes> pieces);

// The gate for frames of a run. One long payload leaves as frames of equal length (reliability/send_window.h), and segmentation
// offload hands them on as they left, back to back. After admit() has let the first one in, those that continue it differ from it
// only in numbers that are known beforehand. So each is compared with what it must be instead of being read; only its checksum is
// computed.
//
// Everything else is left to admit(): other frames, a frame with another acknowledgement, the last one of a burst, which asks for an
// acknowledgement, and everything damaged.

/// Frames that continue each other. Borrows from the bytes that were admitted.
struct RunView {
  std::size_t count = 0;         ///< frames; at least 2, with consecutive sequences and transmission numbers
  std::size_t frame_length = 0;  ///< of each
  Segment segment;               ///< of the first: each has one, of kind bulk or eager_next
  const std::byte* first = nullptr;  ///< the payload of the first

  ConstBytes payload(std::size_t i) const { return {first + i * frame_length, segment.length}; }
  /// Bytes of payload in all.
  std::size_t size() const { return count * segment.length; }
};

/// `first` is what admit() has made of the beginning of `bytes`. True if frames that continue it follow: then `out` is all of them, the
/// first one included.
bool admit_run(ConstBytes bytes, const FrameView& first, RunView& out,
               Integrity integrity = Integrity::checksum);

}  // namespace cluster::wire
