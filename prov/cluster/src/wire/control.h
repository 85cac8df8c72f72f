// Frames that belong to no flow: resets, keep-alives, their answers, and answers to path challenges. Small,
// of fixed size, complete with checksum.
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
  static ControlFrame keep_alive(std::uint32_t nonce);
  /// Says that it is.
  static ControlFrame alive(std::uint32_t nonce);
  /// The engine that has the session says that the path leads there. `session` is that of the receiver, which
  /// is also the nonce of its challenge.
  static ControlFrame path_response(std::uint32_t session);

 private:
  ControlFrame(FrameKind kind, std::uint32_t session, std::uint32_t sequence, const ResetBlock* block);

  std::array<std::byte, sizeof(FrameHeader) + sizeof(ResetBlock)> storage_{};
  std::size_t size_ = 0;
};

}  // namespace cluster::wire
