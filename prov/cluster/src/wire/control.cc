#include "wire/control.h"

#include <cstring>

#include "wire/frame_encoder.h"

namespace cluster::wire {

namespace {

FrameHeader asking(std::uint32_t session, std::uint64_t challenge) {
  FrameHeader fields{};
  fields.sequence = session;
  set_challenge(fields, challenge);
  return fields;
}

}  // namespace

/// `fields`: session and what comes behind it.
ControlFrame::ControlFrame(FrameKind kind, const FrameHeader& fields, const ResetBlock* block)
    : size_(sizeof(FrameHeader) + (block != nullptr ? sizeof *block : 0)) {
  if (block != nullptr) std::memcpy(storage_.data() + sizeof(FrameHeader), block, sizeof *block);
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
  return {FrameKind::reset, FrameHeader{}, &block};
}

ControlFrame ControlFrame::keep_alive(std::uint32_t session, std::uint64_t challenge) {
  return {FrameKind::keep_alive, asking(session, challenge), nullptr};
}

ControlFrame ControlFrame::alive(const FrameView& asked) {
  return {FrameKind::alive, asking(asked.sequence.value, asked.challenge()), nullptr};
}

ControlFrame ControlFrame::path_response(const FrameView& asked) {
  FrameHeader fields = asking(asked.sequence.value, asked.challenge());
  fields.session = asked.sequence.value;
  return {FrameKind::path_response, fields, nullptr};
}

}  // namespace cluster::wire
