// Encodes a frame of a session at the moment it is sent. It writes header, opening (until the peer has it)
// and acknowledgement in front of the stored segments, so a retransmission carries current values. A frame
// has a body of its own, or belongs to a run. A frame that has become too long for the path is cut into
// parts.
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

/// What the sender decides about a frame. The rest of the header follows from the session.
struct FrameIdentity {
  wire::FrameKind kind = wire::FrameKind::flow;
  std::uint8_t flags = 0;
  Sequence sequence;
  TransmissionNumber transmission;
};

/// How to encode frames for the path and the link that they take.
struct FrameLimits {
  std::size_t frame_max = 0;  ///< bytes
  wire::Integrity integrity = wire::Integrity::checksum;
};

/// Writes header and blocks in front of the body's segments. `out` refers to the whole frame. Returns how
/// much of `ack` the frame carries.
AckIncluded encode_session_frame(const FrameIdentity& identity, const Handshake& handshake,
                                 const FrameLimits& limits, const OutgoingAck& ack, FrameBody& body,
                                 link::OutFrame& out);

/// Encodes frames of a run that leave together. It prepares once what is common to all of them.
class RunEncoder {
 public:
  /// The bytes in front of the payload of one frame. They stay there until the frame has left.
  using Front = std::array<std::byte, kHeadroom + wire::kSegmentHeaderMax>;

  RunEncoder(const FrameRun& run, const Handshake& handshake, const FrameLimits& limits,
             const OutgoingAck& ack);
  AckIncluded included() const { return included_; }
  /// Encodes frame `identity.sequence`, which belongs to the run.
  void encode(const FrameIdentity& identity, Front& front, link::OutFrame& out);

 private:
  const FrameRun& run_;
  const wire::Integrity integrity_;
  AckIncluded included_ = AckIncluded::none;
  std::uint8_t flags_ = 0;
  std::size_t segment_begin_ = 0;  ///< behind header, opening and acknowledgement
  std::size_t size_ = 0;           ///< includes the header of the segment
  Front pattern_;                  ///< the front, as far as it is the same in all frames
};

/// Cuts a frame that has become too long for the path into parts (wire/frame.h: PartBlock). All parts
/// together are one transmission of the frame. While the frame size stays, every transmission is cut the same
/// way, so parts of several transmissions fit together.
class PartEncoder {
 public:
  /// `whole` is complete. Each part repeats its first `front` bytes: the header and the blocks.
  PartEncoder(const link::OutFrame& whole, std::size_t front, const FrameLimits& limits);

  std::size_t count() const { return block_.count; }
  /// An earlier call has sent the first `parts`.
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

/// The frames that a flow hands to its link in one call, and the bytes in front of their payload. All flows
/// of an engine share one Burst, one after the other: its 36 KB are too large for the stack of an
/// application's thread.
struct Burst {
  link::OutBurst out;
  /// How much of the acknowledgement each frame carries.
  std::array<AckIncluded, link::kBurstMax> carried{};
  std::array<RunEncoder::Front, link::kBurstMax> fronts;  ///< for frames in runs; not initialized until used
};

}  // namespace cluster::reliability
