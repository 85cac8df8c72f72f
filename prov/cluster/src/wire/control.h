// Frames that belong to no flow: resets, keep-alives and their answers, answers to path challenges, questions about siblings and their
// answers. They are small, of fixed size, and complete with checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "wire/admit.h"
#include "wire/frame.h"

namespace cluster::wire {

/// Owns its bytes; copy it freely.
class ControlFrame {
 public:
  ConstBytes bytes() const { return {storage_.data(), size_}; }

  /// Refuses `offending`, and quotes it, so that its sender can tell the reset from a forged one.
  /// `epoch` is the one already seen (stale_epoch only).
  static ControlFrame reset(const FrameView& offending, ResetReason reason, std::uint64_t epoch = 0);
  /// Asks whether the process is alive. `session` is that of the asking side; the answer repeats it and the challenge. `asked` is the
  /// session of the other side, or 0 if it is not known.
  static ControlFrame keep_alive(std::uint32_t session, std::uint64_t challenge, std::uint32_t asked = 0);
  /// Says that it is alive. Like all answers it is addressed to the session of the asking side.
  static ControlFrame alive(const FrameView& asked);
  /// Says that the path leads to the engine that has the session. It names the session of the asking side and repeats the challenge.
  static ControlFrame path_response(const FrameView& asked);
  /// Asks an endpoint whether `caller`, with which the asking side has the session, belongs to its process.
  static ControlFrame sibling_request(std::uint32_t session, std::uint64_t challenge,
                                      const RailBlock& caller);
  /// Says that the caller belongs to it.
  static ControlFrame sibling_response(const FrameView& asked);

 private:
  ControlFrame(FrameKind kind, const FrameHeader& fields, ConstBytes block = {});

  std::array<std::byte, sizeof(FrameHeader) + sizeof(ResetBlock)> storage_{};
  std::size_t size_ = 0;
};

}  // namespace cluster::wire
