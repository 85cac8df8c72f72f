// Frames that belong to no flow: resets, probes and answers to probes and path challenges. Small, of fixed
// size, complete with checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/reset.h"

namespace cluster::wire {

/// Owns its bytes; copy it freely.
class ControlFrame {
 public:
  ConstBytes bytes() const { return {storage_.data(), size_}; }

  /// Refuses `offending`, which is quoted so that its sender can distinguish the reset from a forged one.
  /// `epoch` is the one already seen (stale_epoch only).
  static ControlFrame reset(const FrameView& offending, ResetReason reason, std::uint64_t epoch = 0);
  /// Asks whether the process is alive. The answer repeats `nonce`.
  static ControlFrame probe(std::uint32_t nonce);
  /// `session` is that of the receiver if an engine with that session answers; 0: a probe responder does.
  static ControlFrame alive(std::uint32_t nonce, std::uint32_t session = 0);

 private:
  ControlFrame(FrameKind kind, std::uint32_t session, std::uint32_t sequence, const ResetBlock* block);

  std::array<std::byte, sizeof(FrameHeader) + sizeof(ResetBlock)> storage_{};
  std::size_t size_ = 0;
};

}  // namespace cluster::wire
