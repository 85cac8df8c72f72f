// Frames that belong to no flow. Resets, keep-alives and their answers, answers to path challenges, questions
// about siblings and their answers are small, of fixed size, and complete with checksum. Datagrams carry a
// message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/segment.h"

namespace cluster::wire {

/// Owns its bytes; copy it freely.
class ControlFrame {
 public:
  ConstBytes bytes() const { return {storage_.data(), size_}; }

  /// Refuses `offending`, and quotes it, so that its sender can tell the reset from a forged one. `epoch`: as
  /// ResetReason says.
  static ControlFrame reset(const FrameView& offending, ResetReason reason, std::uint64_t epoch = 0);
  /// Asks whether the process is alive. `session` is that of the asking side; the answer repeats it and the
  /// challenge. `asked` is the session of the other side, or 0 if it is not known.
  static ControlFrame keep_alive(std::uint32_t session, std::uint64_t challenge, std::uint32_t asked = 0);
  /// Answers that the process is alive. Like all answers, the frame is addressed to the session of the asking
  /// side.
  static ControlFrame alive(const FrameView& asked);
  /// Answers that the path leads to the engine that has the session. The frame names the session of the
  /// asking side and repeats the challenge.
  static ControlFrame path_response(const FrameView& asked);
  /// Asks an endpoint whether `caller`, with which the asking side has the session, belongs to its process.
  static ControlFrame sibling_request(std::uint32_t session, std::uint64_t challenge,
                                      const RailBlock& caller);
  /// Answers that the caller belongs to the process of the endpoint that was asked.
  static ControlFrame sibling_response(const FrameView& asked);

 private:
  ControlFrame(FrameKind kind, const FrameHeader& fields, ConstBytes block = {});

  std::array<std::byte, sizeof(FrameHeader) + sizeof(ResetBlock)> storage_{};
  std::size_t size_ = 0;
};

/// Most bytes that a datagram has in front of its message. Its segment has neither tag nor id, but may have
/// data.
inline constexpr std::size_t kDatagramHeaderMax = sizeof(FrameHeader) + 8 + 8;

/// What precedes the bytes of a datagram: a frame header without session or sequence, and one segment of kind
/// eager. Datagrams are never acknowledged or retransmitted. It owns its bytes. The payload stays with the
/// caller, and follows the header on the wire.
class DatagramHeader {
 public:
  static constexpr std::size_t kPiecesMax = 8;

  /// `segment.length` is the sum of the payload's at most kPiecesMax pieces.
  DatagramHeader(const Segment& segment, std::span<const ConstBytes> payload,
                 Integrity integrity = Integrity::checksum);

  ConstBytes bytes() const { return {storage_.data(), size_}; }

 private:
  std::array<std::byte, sizeof(FrameHeader) + kSegmentHeaderMax> storage_;
  std::size_t size_;
};

}  // namespace cluster::wire
