// The one place where bytes from the network are checked. admit() hands out a frame of this protocol whose
// lengths and checksum are right. Its callers rely on that, and only check whether session and sequence
// concern them.
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

/// A frame that was admitted. It borrows from the admitted bytes.
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
  ConstBytes rails;  ///< the opening's RailBlocks, if there is one; in kinds sibling_...: that of the caller
  bool has_ranges = false;
  Ack ranges;
  PartBlock part{};     ///< if in_part(): which piece of a frame `segments` is
  ResetBlock reset{};   ///< kind reset only
  ConstBytes segments;  ///< not empty in kind flow with flag sequenced, and in kind datagram

  /// The random bits that an answer repeats, in kinds keep_alive, path_challenge, sibling_request and their
  /// answers.
  std::uint64_t challenge() const { return transmission.value | std::uint64_t{ack.value} << 32; }
  bool sequenced() const { return (flags & frame_flag::kSequenced) != 0; }
  bool in_order() const { return (flags & frame_flag::kOrdered) != 0; }
  bool in_part() const { return (flags & frame_flag::kPart) != 0; }
  bool ack_now() const { return (flags & frame_flag::kAckNow) != 0; }
  bool acknowledges() const { return (flags & frame_flag::kAcknowledges) != 0; }
  /// Returns true if the frame acknowledges, and the delay is not longer than the field can hold.
  bool knows_ack_delay() const {
    return acknowledges() && ack_delay_ns < std::numeric_limits<std::uint16_t>::max() * kAckDelayUnit;
  }
};

enum class Refusal : std::uint8_t {
  none,
  malformed,
  checksum,
  sealed,  ///< a sealed frame, for which this endpoint has no key
};

/// Reads the first frame in `bytes` into `out`. On success the next frame begins at bytes[out.length]. After
/// a refusal the rest of `bytes` cannot be trusted either. A frame of the other integrity is always refused.
/// seal/ has already verified the trailer of a sealed frame; `out` does not contain it.
Refusal admit(ConstBytes bytes, FrameView& out, Integrity integrity = Integrity::checksum);

/// Returns the CRC of a frame made of `pieces`. The first piece holds the whole FrameHeader.
std::uint32_t frame_checksum(std::span<const ConstBytes> pieces);

// admit_run() checks the frames of a run. One long payload leaves as frames of equal length
// (reliability/send_window.h), and segmentation offload delivers them back to back. After admit() has
// accepted the first frame, the frames that continue it differ from it only in numbers that are known
// beforehand. So admit_run() does not parse them. It compares each with what it must be, and computes its
// checksum.
//
// admit() checks everything else: other frames, a frame with another acknowledgement, the last frame of a
// burst, which asks for an acknowledgement, and damaged frames.

/// Frames that continue each other. It borrows from the admitted bytes.
struct RunView {
  std::size_t count = 0;         ///< frames; at least 2, with consecutive sequences and transmission numbers
  std::size_t frame_length = 0;  ///< of each
  Segment segment;               ///< of the first frame; each frame has one, of kind bulk or eager_next
  const std::byte* first = nullptr;  ///< the payload of the first

  ConstBytes payload(std::size_t i) const { return {first + i * frame_length, segment.length}; }
  /// Bytes of payload in all.
  std::size_t size() const { return count * segment.length; }
};

/// Finds the run at the beginning of `bytes`; `first` is the frame that admit() has read there. Returns true
/// if at least one frame continues `first`; then `out` is the whole run, `first` included.
bool admit_run(ConstBytes bytes, const FrameView& first, RunView& out,
               Integrity integrity = Integrity::checksum);

}  // namespace cluster::wire
