// Encodes a frame of a session at the moment it is sent: header, opening (until the peer has it) and
// acknowledgement are written in front of the stored segments, so that a retransmission carries what is true
// now.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "link/link.h"
#include "reliability/frame_body.h"
#include "reliability/handshake.h"
#include "reliability/outgoing_ack.h"
#include "reliability/sent_frames.h"
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

/// Writes everything in front of the body's segments and makes `out` refer to the whole. Returns how much of
/// `ack` the frame carries.
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
  /// How much of the acknowledgement each frame carries.
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

}  // namespace cluster::reliability
