// Encodes a frame of a session at the moment it is sent: header, opening (until the peer has it) and
// acknowledgement are written in front of the stored segments, so that a retransmission carries what is true
// now.
#pragma once

#include "link/link.h"
#include "reliability/frame_body.h"
#include "reliability/handshake.h"
#include "reliability/outgoing_ack.h"
#include "wire/frame.h"

namespace cluster::reliability {

/// What the sender says of a frame; the rest of its header follows from the session.
struct FrameIdentity {
  wire::FrameKind kind = wire::FrameKind::flow;
  std::uint8_t flags = 0;
  Sequence sequence;
  TransmissionNumber transmission;
};

/// Writes everything in front of the body's segments and makes `out` refer to the whole. Returns how much of
/// `ack` the frame carries, which is at most `frame_max` bytes long.
AckIncluded encode_session_frame(const FrameIdentity& identity, const Handshake& handshake,
                                 std::size_t frame_max, const OutgoingAck& ack, FrameBody& body,
                                 link::OutFrame& out);

}  // namespace cluster::reliability
