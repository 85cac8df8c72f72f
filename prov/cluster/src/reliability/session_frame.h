// Functions that encode a frame of a session when the frame is sent. They write the header and the current
// acknowledgement before the stored segments, so a retransmission carries current values. They also write our
// opening until the peer has shown that it has the opening. A frame has a body of its own or belongs to a
// run. A frame that is too long for the path is cut into parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "link/link.h"
#include "reliability/frame_body.h"
#include "reliability/handshake.h"
#include "reliability/outgoing_ack.h"
#include "reliability/send_window.h"
#include "wire/frame.h"

namespace cluster::reliability {

/// The header fields that the frame sender sets. The other fields follow from the session and the
/// acknowledgement.
struct FrameIdentity {
  wire::FrameKind kind = wire::FrameKind::flow;
  std::uint8_t flags = 0;
  Sequence sequence;
  TransmissionNumber transmission;
};

/// How frames must be encoded for the path and the link over which they leave.
struct FrameLimits {
  std::size_t frame_max = 0;  ///< bytes
  wire::Integrity integrity = wire::Integrity::checksum;
};

/// Writes the header and blocks in front of the body's segments, and sets `out` to refer to the whole frame.
/// Returns how much of `ack` the frame carries.
AckIncluded encode_session_frame(const FrameIdentity& identity, const Handshake& handshake,
                                 const FrameLimits& limits, const OutgoingAck& ack, FrameBody& body,
                                 link::OutFrame& out);

/// Encodes frames of a run that leave together. The constructor encodes the bytes that all of them have in
/// common.
class RunEncoder {
 public:
  /// Buffer for the bytes in front of the payload of one frame. It must stay unchanged until the frame has
  /// left.
  using Front = std::array<std::byte, kHeadroom + wire::kSegmentHeaderMax>;

  RunEncoder(const FrameRun& run, const Handshake& handshake, const FrameLimits& limits,
             const OutgoingAck& ack);
  AckIncluded included() const { return included_; }
  /// Encodes frame `identity.sequence`, which must belong to the run.
  void encode(const FrameIdentity& identity, Front& front, link::OutFrame& out);

 private:
  const FrameRun& run_;
  const wire::Integrity integrity_;
  AckIncluded included_ = AckIncluded::none;
  std::uint8_t flags_ = 0;
  std::size_t segment_begin_ = 0;  ///< offset of the segment, after header, opening and acknowledgement
  std::size_t size_ = 0;           ///< bytes of the front, header of the segment included
  Front pattern_;                  ///< a front with the bytes that all frames have in common
};

/// Cuts a frame that is too long for the path into parts (wire/frame.h: PartBlock). All parts together are
/// one transmission of the frame. While the frame size does not change, every transmission is cut in the same
/// way, so the receiver can join parts of different transmissions.
class PartEncoder {
 public:
  /// `whole` is the encoded frame. Each part repeats its first `front` bytes, which are its header and its
  /// opening.
  PartEncoder(const link::OutFrame& whole, std::size_t front, const FrameLimits& limits);

  std::size_t count() const { return block_.count; }
  /// Skips the first `parts` parts, which have already left.
  void skip(std::size_t parts) { block_.number = static_cast<std::uint8_t>(parts); }
  /// Returns the next part, valid until the next call.
  link::OutFrame next();

 private:
  const link::Path* path_;
  std::size_t front_;
  wire::Integrity integrity_;
  std::vector<std::byte> whole_;
  wire::PartBlock block_;
  std::vector<std::byte> part_;
};

/// The frames that a flow passes to its link in one call, and the bytes in front of their payload. All flows
/// of an engine use the same Burst in turn, because its 38 KB are too large for the stack of an application's
/// thread.
struct Burst {
  link::OutBurst out;
  /// How much of the acknowledgement each frame carries.
  std::array<AckIncluded, link::kBurstMax> carried{};
  std::array<RunEncoder::Front, link::kBurstMax>
      fronts;  ///< used for frames of runs; uninitialized until then
};

}  // namespace cluster::reliability
