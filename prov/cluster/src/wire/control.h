// Frames that belong to no flow: resets, keep-alives, their answers, answers to path challenges, and what is asked and
// said about siblings. Small, of fixed size, complete with checksum.
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
  /// Asks whether the process is alive. `session` is that of the asking side; the answer repeats both. `asked`: that of the
  /// other side, 0 if it is not known.
  static ControlFrame keep_alive(std::uint32_t session, std::uint64_t challenge, std::uint32_t asked = 0);
  /// Says that it is. Like all answers it is addressed to the session of the asking side.
  static ControlFrame alive(const FrameView& asked);
  /// The engine that has the session says that the path leads there. It names the asking side's session, as the
  /// challenge did, and repeats the challenge.
  static ControlFrame path_response(const FrameView& asked);
  /// Asks an endpoint whether `caller`, with which the asking side has the session, belongs to its process.
  static ControlFrame sibling_request(std::uint32_t session, std::uint64_t challenge,
                                      const RailBlock& caller);
  /// Says that it does.
  static ControlFrame sibling_response(const FrameView& asked);

 private:
  ControlFrame(FrameKind kind, const FrameHeader& fields, ConstBytes block = {});

  std::array<std::byte, sizeof(FrameHeader) + sizeof(ResetBlock)> storage_{};
  std::size_t size_ = 0;
};

}  // namespace cluster::wire
