#include "reliability/session_frame.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "wire/frame.h"

namespace cluster::reliability {
namespace {

std::byte* write_address(const SocketAddress& address, std::byte* at) {
  const wire::RailBlock block = wire::rail_block(address);
  std::memcpy(at, &block, sizeof block);
  return at + sizeof block;
}

std::byte* write_opening(const Handshake& handshake, std::byte* at) {
  wire::OpeningBlock block;
  wire::encode(handshake.opening(), block);
  std::memcpy(at, &block, sizeof block);
  at += sizeof block;
  for (const SocketAddress& address : handshake.further_addresses()) at = write_address(address, at);
  if (!handshake.sibling().empty()) at = write_address(handshake.sibling(), at);
  std::size_t left = handshake.queue_pairs().size();
  for (const wire::VerbsAddress& each : handshake.queue_pairs()) {
    const wire::VerbsBlock named = wire::verbs_block(each, --left);
    std::memcpy(at, &named, sizeof named);
    at += sizeof named;
  }
  return at;
}

/// Returns how much of the acknowledgement fits into a frame with `segment_bytes` bytes of segments.
OutgoingAck::Fit fit_of(const Handshake& handshake, std::size_t frame_max, const OutgoingAck& ack,
                        std::size_t segment_bytes) {
  const std::size_t used = sizeof(wire::FrameHeader) + handshake.opening_size() + segment_bytes;
  return ack.fit(frame_max > used ? frame_max - used : 0, segment_bytes == 0);
}

/// Writes session and acknowledgement to the header. Writes to `at` the blocks that follow the header, and
/// returns the frame flags for these blocks.
std::uint8_t write_front(const Handshake& handshake, const OutgoingAck& ack, AckIncluded included,
                         wire::FrameHeader& header, std::byte* at) {
  using namespace wire::frame_flag;
  std::uint8_t flags = 0;
  header.session = handshake.peer_session();
  if (handshake.opening_size() != 0) {
    flags |= kOpening;
    at = write_opening(handshake, at);
  }
  if (included != AckIncluded::none) {
    flags |= kAcknowledges;
    ack.write(header);
  }
  if (included == AckIncluded::block) {
    flags |= kAckBlock;
    ack.write_block(at);
  }
  return flags;
}

/// Writes the header fields that the frame sender sets.
void write_identity(const FrameIdentity& identity, std::uint8_t further_flags, wire::FrameHeader& header) {
  header.kind = static_cast<std::uint8_t>(identity.kind);
  header.flags = identity.flags | further_flags;
  header.sequence = identity.sequence.value;
  header.transmission = identity.transmission.value;
}

}  // namespace

AckIncluded encode_session_frame(const FrameIdentity& identity, const Handshake& handshake,
                                 const FrameLimits& limits, const OutgoingAck& ack, FrameBody& body,
                                 link::OutFrame& out) {
  const OutgoingAck::Fit fit = fit_of(handshake, limits.frame_max, ack, body.size());
  const std::size_t front = sizeof(wire::FrameHeader) + handshake.opening_size() + fit.block_bytes;
  std::byte* const start = body.segments() - front;
  wire::FrameHeader& header = wire::header_at(start);
  write_identity(identity, write_front(handshake, ack, fit.included, header, start + sizeof header), header);
  out.add({start, front + body.filled});
  for (std::size_t i = 0; i < body.payload_pieces; ++i) out.add(body.payload[i]);
  wire::encode_frame(header, {out.pieces.data(), out.count}, limits.integrity);
  return fit.included;
}

RunEncoder::RunEncoder(const FrameRun& run, const Handshake& handshake, const FrameLimits& limits,
                       const OutgoingAck& ack)
    : run_(run), integrity_(limits.integrity) {
  const std::size_t segment_header = wire::encoded_size(run.segment);
  const OutgoingAck::Fit fit = fit_of(handshake, limits.frame_max, ack, segment_header + run.part);
  included_ = fit.included;
  segment_begin_ = sizeof(wire::FrameHeader) + handshake.opening_size() + fit.block_bytes;
  size_ = segment_begin_ + segment_header;
  wire::FrameHeader& header = wire::header_at(pattern_.data());
  flags_ = write_front(handshake, ack, included_, header, pattern_.data() + sizeof header);
  wire::encode_kind(header, size_ + run.part);
  wire::encode(run.segment, pattern_.data() + segment_begin_);
}

void RunEncoder::encode(const FrameIdentity& identity, Front& front, link::OutFrame& out) {
  const std::size_t offset = run_.offset_of(identity.sequence);
  std::memcpy(front.data(), pattern_.data(), size_);
  auto& header = *std::launder(reinterpret_cast<wire::FrameHeader*>(front.data()));
  write_identity(identity, flags_, header);
  if (run_.segment.kind == wire::SegmentKind::bulk) {
    const wire::Le64 place = run_.segment.offset + offset;
    std::memcpy(front.data() + segment_begin_ + wire::kBulkOffsetAt, &place, sizeof place);
  }
  out.add({front.data(), size_});
  out.add(run_.payload.subspan(offset, run_.part));
  wire::encode_checksum(header, {out.pieces.data(), out.count}, integrity_);
}

PartEncoder::PartEncoder(const link::OutFrame& whole, std::size_t front, const FrameLimits& limits)
    : path_(whole.path), front_(front), integrity_(limits.integrity) {
  for (const ConstBytes piece : std::span(whole.pieces).first(whole.count)) {
    whole_.insert(whole_.end(), piece.begin(), piece.end());
  }
  const std::size_t total = whole_.size() - front;
  const std::size_t capacity = limits.frame_max - front - sizeof block_;
  block_.number = 0;
  block_.count = static_cast<std::uint8_t>((total + capacity - 1) / capacity);
  block_.total = static_cast<std::uint16_t>(total);
}

link::OutFrame PartEncoder::next() {
  const std::size_t begin = block_.begin();
  const std::size_t size = std::min(block_.piece_max(), block_.total - begin);
  part_.assign(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(front_));
  part_.resize(front_ + sizeof block_ + size);
  std::memcpy(part_.data() + front_, &block_, sizeof block_);
  std::memcpy(part_.data() + front_ + sizeof block_, whole_.data() + front_ + begin, size);
  ++block_.number;
  auto& header = *std::launder(reinterpret_cast<wire::FrameHeader*>(part_.data()));
  header.flags |= wire::frame_flag::kPart;
  link::OutFrame out;
  out.path = path_;
  out.add(part_);
  wire::encode_frame(header, {out.pieces.data(), out.count}, integrity_);
  return out;
}

}  // namespace cluster::reliability
