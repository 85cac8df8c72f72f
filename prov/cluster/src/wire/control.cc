#include "wire/control.h"

#include <cstring>

#include "wire/frame_encoder.h"

namespace cluster::wire {

ControlFrame::ControlFrame(FrameKind kind, std::uint32_t session, std::uint32_t sequence,
                           const ResetBlock* block)
    : size_(sizeof(FrameHeader) + (block != nullptr ? sizeof *block : 0)) {
  if (block != nullptr) std::memcpy(storage_.data() + sizeof(FrameHeader), block, sizeof *block);
  FrameHeader& header = header_at(storage_.data());
  header.kind = static_cast<std::uint8_t>(kind);
  header.session = session;
  header.sequence = sequence;
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
  return {FrameKind::reset, 0, 0, &block};
}

ControlFrame ControlFrame::keep_alive(std::uint32_t nonce) {
  return {FrameKind::keep_alive, 0, nonce, nullptr};
}

ControlFrame ControlFrame::alive(std::uint32_t nonce) { return {FrameKind::alive, 0, nonce, nullptr}; }

ControlFrame ControlFrame::path_response(std::uint32_t session) {
  return {FrameKind::path_response, session, session, nullptr};
}

}  // namespace cluster::wire
