#include "reliability/sealer.h"

#include <cstring>

#include "wire/admit.h"

namespace cluster::reliability {

using namespace wire::frame_flag;

Word::Word(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals)
    : anything_(acks.anything()),
      gap_(arrivals.has_gap()),
      in_vain_is_news_(arrivals.spurious() != acks.spurious_reported()),
      expected_(arrivals.expected()),
      newest_(acks.newest()),
      age_(acks.delay_field(now)) {
  if (gap_ || arrivals.spurious() != 0) arrivals.describe(ack_.emplace());
}

Word::Fit Word::fit(std::size_t room, bool bare) const {
  if (!anything_) return {false, 0};
  // Frames received in vain are worth a block while they are news, and where there is room anyway.
  const bool wanted = gap_ || in_vain_is_news_ || (bare && ack_);
  const std::size_t size = wanted ? wire::ack_block_size(ack_->count) : 0;
  if (size <= room) return {true, size};
  return {!gap_, 0};
}

void Word::fill(wire::FrameHeader& header) const {
  header.ack_delay = age_;
  header.ack = expected_.value;
  header.newest = newest_.value;
}

Word::Said seal(const Label& label, const Handshake& handshake, const Word& word, FrameBody& body,
                link::OutFrame& out) {
  const std::size_t opening = handshake.opening_size();
  const std::size_t used = sizeof(wire::FrameHeader) + opening + body.size();
  const std::size_t room = handshake.frame_max() > used ? handshake.frame_max() - used : 0;
  const Word::Fit fit = word.fit(room, body.size() == 0);
  const std::size_t front = sizeof(wire::FrameHeader) + opening + fit.block;
  std::byte* start = body.segments() - front;

  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(label.kind);
  header.flags = static_cast<std::uint8_t>(label.flags | (opening != 0 ? kOpening : 0) |
                                           (fit.block != 0 ? kAckBlock : 0) | (fit.says ? kAcknowledges : 0));
  header.length = static_cast<std::uint16_t>(front + body.size());
  header.session = handshake.peer_session();
  header.sequence = label.sequence.value;
  header.transmission = label.transmission.value;
  if (fit.says) word.fill(header);
  std::memcpy(start, &header, sizeof header);
  std::byte* at = start + sizeof header;
  if (opening != 0) {
    wire::OpeningBlock block;
    wire::encode(handshake.ours(), block);
    std::memcpy(at, &block, sizeof block);
    at += sizeof block;
    for (const SocketAddress& address : handshake.further()) {
      const wire::RailBlock further = wire::rail_block(address);
      std::memcpy(at, &further, sizeof further);
      at += sizeof further;
    }
  }
  if (fit.block != 0) wire::encode(word.ack(), at);

  out.add({start, front + body.filled});
  for (std::size_t i = 0; i < body.payload_pieces; ++i) out.add(body.payload[i]);
  header.checksum = wire::frame_checksum({out.pieces.data(), out.count});
  std::memcpy(start, &header, sizeof header);
  if (!fit.says) return Word::Said::nothing;
  return fit.block != 0 ? Word::Said::all : Word::Said::main;
}

void seal_question(const Question& question, FrameBody& padding, link::OutFrame& out) {
  std::byte* start = padding.segments() - sizeof(wire::FrameHeader);
  wire::FrameHeader header{};
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(question.kind);
  header.length = static_cast<std::uint16_t>(sizeof header + padding.size());
  header.session = question.session;
  header.sequence = question.nonce;
  std::memcpy(start, &header, sizeof header);
  out.add({start, sizeof header + padding.filled});
  for (std::size_t i = 0; i < padding.payload_pieces; ++i) out.add(padding.payload[i]);
  header.checksum = wire::frame_checksum({out.pieces.data(), out.count});
  std::memcpy(start, &header, sizeof header);
}

}  // namespace cluster::reliability
