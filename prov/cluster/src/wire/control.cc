#include "wire/control.h"

#include <cstring>

namespace cluster::wire {

ControlFrame::ControlFrame(FrameKind kind, std::uint32_t session, std::uint32_t sequence,
                           const ResetBlock* block) {
  size_ = sizeof(FrameHeader) + (block != nullptr ? sizeof *block : 0);
  FrameHeader header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = static_cast<std::uint8_t>(kind);
  header.length = static_cast<std::uint16_t>(size_);
  header.session = session;
  header.sequence = sequence;
  std::memcpy(storage_.data(), &header, sizeof header);
  if (block != nullptr) std::memcpy(storage_.data() + sizeof header, block, sizeof *block);
  const ConstBytes whole = bytes();
  header.checksum = frame_checksum({&whole, 1});
  std::memcpy(storage_.data(), &header, sizeof header);
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

ControlFrame ControlFrame::probe(std::uint32_t nonce) { return {FrameKind::probe, 0, nonce, nullptr}; }

ControlFrame ControlFrame::alive(std::uint32_t nonce, std::uint32_t session) {
  return {FrameKind::alive, session, nonce, nullptr};
}

}  // namespace cluster::wire
