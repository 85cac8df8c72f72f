#include "wire/control.h"

#include <algorithm>
#include <cstring>

#include "wire/frame.h"

namespace cluster::wire {

namespace {

FrameHeader asking(std::uint32_t session, std::uint64_t challenge) {
  FrameHeader fields{};
  fields.sequence = session;
  set_challenge(fields, challenge);
  return fields;
}

/// Returns the header of an answer, which is addressed to the session that asks.
FrameHeader answering(const FrameView& asked) {
  FrameHeader fields = asking(asked.sequence.value, asked.challenge());
  fields.session = asked.sequence.value;
  return fields;
}

}  // namespace

/// `fields` provides the header fields from the session on.
ControlFrame::ControlFrame(FrameKind kind, const FrameHeader& fields, ConstBytes block)
    : size_(sizeof(FrameHeader) + block.size()) {
  if (!block.empty()) std::memcpy(storage_.data() + sizeof(FrameHeader), block.data(), block.size());
  FrameHeader& header = header_at(storage_.data());
  header = fields;
  header.kind = static_cast<std::uint8_t>(kind);
  const ConstBytes whole = bytes();
  encode_frame(header, {&whole, 1});
}

ControlFrame ControlFrame::reset(const FrameView& offending, ResetReason reason, std::uint64_t epoch) {
  ResetBlock block{};
  block.reason = static_cast<std::uint8_t>(reason);
  block.session =
      offending.session != 0 || !offending.has_opening ? offending.session : offending.opening.session;
  block.sequence = offending.sequence.value;
  block.transmission = offending.transmission.value;
  block.epoch = epoch;
  return {FrameKind::reset, FrameHeader{}, as_bytes(&block, sizeof block)};
}

ControlFrame ControlFrame::keep_alive(std::uint32_t session, std::uint64_t challenge, std::uint32_t asked) {
  FrameHeader fields = asking(session, challenge);
  fields.session = asked;
  return {FrameKind::keep_alive, fields};
}

ControlFrame ControlFrame::path_challenge(std::uint32_t session, std::uint64_t challenge,
                                          std::uint32_t asked) {
  FrameHeader fields = asking(session, challenge);
  fields.session = asked;
  return {FrameKind::path_challenge, fields};
}

ControlFrame ControlFrame::alive(const FrameView& asked) { return {FrameKind::alive, answering(asked)}; }

ControlFrame ControlFrame::path_response(const FrameView& asked) {
  return {FrameKind::path_response, answering(asked)};
}

ControlFrame ControlFrame::sibling_request(std::uint32_t session, std::uint64_t challenge,
                                           const RailBlock& caller) {
  return {FrameKind::sibling_request, asking(session, challenge), as_bytes(&caller, sizeof caller)};
}

ControlFrame ControlFrame::sibling_response(const FrameView& asked) {
  return {FrameKind::sibling_response, answering(asked), asked.rails};
}

DatagramHeader::DatagramHeader(const Segment& segment, std::span<const ConstBytes> payload,
                               Integrity integrity)
    : size_(sizeof(FrameHeader) + encode(segment, storage_.data() + sizeof(FrameHeader))) {
  std::array<ConstBytes, 1 + kPiecesMax> pieces;
  pieces[0] = bytes();
  std::copy(payload.begin(), payload.end(), pieces.begin() + 1);
  FrameHeader& header = header_at(storage_.data());
  header.kind = static_cast<std::uint8_t>(FrameKind::datagram);
  encode_frame(header, std::span(pieces).first(1 + payload.size()), integrity);
}

}  // namespace cluster::wire
