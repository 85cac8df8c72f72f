// Encodes a frame of a session at the moment it is sent: header, opening (until the peer has it) and
// acknowledgement are written in front of the stored segments, so that a retransmission carries what is true
// now. A frame has a body of its own, or belongs to a run. If it has become too long for the path, it is cut into parts.
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

/// What the sender says of a frame; the rest of its header follows from the session.
struct FrameIdentity {
  wire::FrameKind kind = wire::FrameKind::flow;
  std::uint8_t flags = 0;
  Sequence sequence;
  TransmissionNumber transmission;
};

/// How frames have to be made for the path and the link that they take.
struct FrameLimits {
  std::size_t frame_max = 0;  ///< bytes
  wire::Integrity integrity = wire::Integrity::checksum;
};

/// Writes what precedes the body's segments; `out` refers to the whole. Returns how much of `ack` it carries.
AckIncluded encode_session_frame(const FrameIdentity& identity, const Handshake& handshake,
                                 const FrameLimits& limits, const OutgoingAck& ack, FrameBody& body,
                                 link::OutFrame& out);

/// The same for frames of a run that leave together: what is common to all of them is found out once.
class RunEncoder {
 public:
  /// What lies in front of the payload of one frame, which stays there until the frame has left.
  using Front = std::array<std::byte, kHeadroom + wire::kSegmentHeaderMax>;

  RunEncoder(const FrameRun& run, const Handshake& handshake, const FrameLimits& limits,
             const OutgoingAck& ack);
  AckIncluded included() const { return included_; }
  /// The frame `identity.sequence`, one of the run.
  void encode(const FrameIdentity& identity, Front& front, link::OutFrame& out);

 private:
  const FrameRun& run_;
  const wire::Integrity integrity_;
  AckIncluded included_ = AckIncluded::none;
  std::uint8_t flags_ = 0;
  std::size_t segment_begin_ = 0;  ///< behind header, opening and acknowledgement
  std::size_t size_ = 0;           ///< with the header of the segment
  Front pattern_;                  ///< those bytes, as far as they are the same in all frames
};

/// Cuts a frame that has become too long for the path into parts (wire/frame.h: PartBlock): one sending of the frame. While the frame size
/// stays, a frame is always cut the same way, so parts of several sendings go together.
class PartEncoder {
 public:
  /// `whole` is complete; its first `front` bytes are the header and the blocks, which each part repeats.
  PartEncoder(const link::OutFrame& whole, std::size_t front, const FrameLimits& limits);

  std::size_t count() const { return block_.count; }
  /// The first `parts` have left with an earlier sending.
  void skip(std::size_t parts) { block_.number = static_cast<std::uint8_t>(parts); }
  /// The next part; stays there until the next call.
  link::OutFrame next();

 private:
  const link::Path* path_;
  std::size_t front_;
  wire::Integrity integrity_;
  std::vector<std::byte> whole_;
  wire::PartBlock block_;
  std::vector<std::byte> part_;
};

/// The frames that a flow hands to its link in one call, and what lies in front of their payload. All flows of an engine build
/// their bursts in the same one, one after the other: it is some 36 KB, too large for the stack of an application's thread.
struct Burst {
  link::OutBurst out;
  std::array<AckIncluded, link::kBurstMax> carried{};     ///< by each frame
  std::array<RunEncoder::Front, link::kBurstMax> fronts;  ///< of frames in runs; left as they are until then
};

}  // namespace cluster::reliability
