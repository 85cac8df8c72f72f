#include "reliability/session_frame.h"

#include <cstring>

#include "wire/frame_encoder.h"

namespace cluster::reliability {
namespace {

std::byte* write_opening(const Handshake& handshake, std::byte* at) {
  wire::OpeningBlock block;
  wire::encode(handshake.opening(), block);
  std::memcpy(at, &block, sizeof block);
  at += sizeof block;
  for (const SocketAddress& address : handshake.further_addresses()) {
    const wire::RailBlock further = wire::rail_block(address);
    std::memcpy(at, &further, sizeof further);
    at += sizeof further;
  }
  return at;
}

}  // namespace

AckIncluded encode_session_frame(const FrameIdentity& identity, const Handshake& handshake,
                                 std::size_t frame_max, const OutgoingAck& ack, FrameBody& body,
                                 link::OutFrame& out) {
  using namespace wire::frame_flag;
  const std::size_t opening = handshake.opening_size();
  const std::size_t used = sizeof(wire::FrameHeader) + opening + body.size();
  const std::size_t free_bytes = frame_max > used ? frame_max - used : 0;
  const OutgoingAck::Fit fit = ack.fit(free_bytes, body.size() == 0);
  const std::size_t front = sizeof(wire::FrameHeader) + opening + fit.block_bytes;
  std::byte* const start = body.segments() - front;

  wire::FrameHeader& header = wire::header_at(start);
  header.kind = static_cast<std::uint8_t>(identity.kind);
  header.session = handshake.peer_session();
  header.sequence = identity.sequence.value;
  header.transmission = identity.transmission.value;
  std::uint8_t flags = identity.flags;
  std::byte* at = start + sizeof header;
  if (opening != 0) {
    flags |= kOpening;
    at = write_opening(handshake, at);
  }
  if (fit.included != AckIncluded::none) {
    flags |= kAcknowledges;
    ack.write(header);
  }
  if (fit.included == AckIncluded::block) {
    flags |= kAckBlock;
    ack.write_block(at);
  }
  out.add({start, front + body.filled});
  for (std::size_t i = 0; i < body.payload_pieces; ++i) out.add(body.payload[i]);
  header.flags = flags;
  wire::encode_frame(header, {out.pieces.data(), out.count});
  return fit.included;
}

}  // namespace cluster::reliability
