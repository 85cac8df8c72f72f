// Checks the bytes of frames that arrive from the network. If admit() succeeds, the lengths of the frame and
// its blocks are right, and so is the checksum if the frame has one. Callers rely on this. They check numbers
// such as the session and the sequence, and decode the segments (wire/segment.h).
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>

#include "base/bytes.h"
#include "base/sequence.h"
#include "wire/ack.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/segment.h"

namespace cluster::wire {

/// A frame that was admitted. Its spans point into the admitted bytes.
struct FrameView {
  FrameKind kind = FrameKind::flow;
  std::uint8_t flags = 0;
  std::size_t length = 0;  ///< length of the whole frame
  std::uint64_t ack_delay_ns = 0;
  std::uint32_t session = 0;
  Sequence sequence;
  TransmissionNumber transmission;
  Sequence ack;
  TransmissionNumber largest_acked;
  bool has_opening = false;
  Opening opening;
  ConstBytes rails;  ///< RailBlocks of the opening, if any; in kinds sibling_...: the RailBlock of the caller
  bool has_ranges = false;
  Ack ranges;
  PartBlock part{};     ///< if in_part(): says which piece of a frame is in `segments`
  ResetBlock reset{};   ///< kind reset only
  ConstBytes segments;  ///< not empty if sequenced() or of kind datagram, otherwise empty

  /// Returns the random bits that an answer repeats. Only for kinds keep_alive, path_challenge,
  /// sibling_request and their answers.
  std::uint64_t challenge() const { return transmission.value | std::uint64_t{ack.value} << 32; }
  /// Returns the number of the sender's rail, or nothing if the frame does not say it. Only for kind
  /// path_challenge.
  std::optional<std::uint8_t> rail() const {
    const std::uint32_t number = largest_acked.value;
    return number == 0 || number > kRailsMax ? std::nullopt
                                             : std::optional(static_cast<std::uint8_t>(number - 1));
  }
  bool sequenced() const { return (flags & frame_flag::kSequenced) != 0; }
  bool in_order() const { return (flags & frame_flag::kOrdered) != 0; }
  bool in_part() const { return (flags & frame_flag::kPart) != 0; }
  bool ack_now() const { return (flags & frame_flag::kAckNow) != 0; }
  bool acknowledges() const { return (flags & frame_flag::kAcknowledges) != 0; }
  /// Returns true if the frame has an acknowledgement, and the header field `ack_delay` could hold its delay.
  bool knows_ack_delay() const {
    return acknowledges() && ack_delay_ns < std::numeric_limits<std::uint16_t>::max() * kAckDelayUnit;
  }
};

enum class Refusal : std::uint8_t {
  none,
  malformed,
  checksum,
  sealed,  ///< a sealed frame, but this endpoint has no key
};

/// Reads the first frame in `bytes` into `out`. On success, the next frame, if there is one, begins at
/// bytes[out.length]. After a refusal, the rest of `bytes` cannot be trusted either. If `integrity` is
/// checksum, sealed frames are refused. If `integrity` is seal, frames that are not sealed are refused. seal/
/// must have verified the trailer of a sealed frame before this call. `out` does not contain the trailer.
Refusal admit(ConstBytes bytes, FrameView& out, Integrity integrity = Integrity::checksum);

/// Returns the CRC of a frame made of `pieces`. The first piece holds the whole FrameHeader.
std::uint32_t frame_checksum(std::span<const ConstBytes> pieces);

/// A frame of a flow with an acknowledgement, but without blocks. It carries one whole eager message, one
/// whole write, or the answer to one write. The answer may also precede the message or the write. Most frames
/// of short messages and short writes are such frames (reliability/frame_lane.h).
struct LoneFrame : LoneNumbers {
  enum class Content : std::uint8_t { message, write, nothing };

  bool ack_now = false;
  bool answers = false;  ///< `answer` is the first segment
  Content content = Content::nothing;
  AnswerHeader answer;                 ///< valid if `answers`
  EagerHeader message;                 ///< valid for Content::message
  WriteHeader write;                   ///< valid for Content::write
  const std::byte* payload = nullptr;  ///< the payload of the message or write

  bool only_message() const { return content == Content::message && !answers; }

  /// Returns true if the header field `ack_delay` could hold the delay of the acknowledgement.
  bool knows_ack_delay() const { return ack_delay != std::numeric_limits<std::uint16_t>::max(); }
  std::uint64_t ack_delay_ns() const { return ack_delay * kAckDelayUnit; }
};

/// The first four bytes of a lone frame without kAckNow and kOrdered, as one word. A lone frame may have
/// these flags, so kLoneMask removes them before the comparison.
inline constexpr std::uint32_t kLoneWord =
    kMagic | kVersion << 8 | static_cast<std::uint32_t>(FrameKind::flow) << 16 |
    std::uint32_t{frame_flag::kSequenced | frame_flag::kAcknowledges} << 24;
inline constexpr std::uint32_t kLoneMask = ~(std::uint32_t{frame_flag::kAckNow | frame_flag::kOrdered} << 24);

/// Returns the session that a lone frame names, or 0 if the bytes do not begin like a lone frame. Checks
/// nothing else.
inline std::uint32_t session_of_lone(ConstBytes datagram) {
  Le32 word;
  Le32 session;
  if (datagram.size() < sizeof(FrameHeader)) return 0;
  std::memcpy(&word, datagram.data(), sizeof word);
  if ((word & kLoneMask) != kLoneWord) return 0;
  std::memcpy(&session, datagram.data() + offsetof(FrameHeader, session), sizeof session);
  return session;
}
/// Reads a datagram that is one lone frame with a checksum. Returns false for any other datagram, or if the
/// checksum is wrong. In this case the caller must use admit().
bool admit_lone(ConstBytes datagram, LoneFrame& out);

// match_run() and check_run() check the frames of a run. The sender divides a long payload into frames of
// equal length (reliability/send_window.h), and segmentation offload delivers them back to back. Apart from
// their payloads, the frames that continue the first one differ from it only in numbers that can be computed.
// So after admit() has accepted the first frame, nothing parses the others. match_run() compares each header
// with the bytes that the header must have. check_run() then computes the checksums. If the caller knows by
// then where the payloads belong, check_run() copies each frame's payload while it reads the frame for the
// checksum. A payload that turns out to be damaged has then been written to its place. This does no harm,
// because the sender transmits it again. Only memory that nobody reads before that may be the place.
//
// admit() checks all frames that do not continue a run. Examples are a frame with another acknowledgement,
// the last frame of a burst (it asks for an acknowledgement), and a damaged frame.

/// A run of frames that continue each other. Its pointers point into the bytes that have arrived.
struct RunView {
  /// Number of frames, at least 2 from match_run(); their sequences and transmission numbers are consecutive.
  std::size_t count = 0;
  std::size_t frame_length = 0;  ///< length of each frame
  std::size_t head = 0;          ///< bytes of each frame before its payload
  bool stored = false;           ///< check_run() has copied the payloads to their place
  /// Segment of the first frame; each frame has one, of kind bulk or eager_next.
  Segment segment;
  const std::byte* first = nullptr;  ///< payload of the first frame

  ConstBytes payload(std::size_t i) const { return {first + i * frame_length, segment.length}; }
  /// Returns the number of payload bytes in all frames.
  std::size_t size() const { return count * segment.length; }
};

/// Finds the run at the beginning of `bytes` by the headers of its frames. `first` must be the frame that
/// admit() has read there. Returns true if at least one frame continues `first`. In this case `out` is the
/// whole run, including `first`, but no checksum except that of `first` is known to be right.
bool match_run(ConstBytes bytes, const FrameView& first, RunView& out);

/// Ends the run before the first frame whose checksum is wrong. Returns true if the run still has two frames.
/// `into`: the place for the payloads of the whole run, or empty. With Integrity::seal, seal/ has verified
/// all frames, and this function does nothing.
bool check_run(RunView& run, Bytes into, Integrity integrity = Integrity::checksum);

}  // namespace cluster::wire
