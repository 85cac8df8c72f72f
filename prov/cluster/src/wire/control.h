// Frames that occupy no sequence of a flow. A ControlFrame is small, and includes its checksum. It is a
// reset, a question, or the answer to a question. There are three questions: keep-alives, path challenges,
// and questions about siblings. A DatagramHeader begins a datagram, which carries a message.
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

/// A ControlFrame owns its bytes, so it may be copied.
class ControlFrame {
 public:
  ConstBytes bytes() const { return {storage_.data(), size_}; }

  /// Returns a reset, which refuses `offending`. The reset quotes that frame, so that the frame's sender can
  /// distinguish the reset from a forged one. `epoch`: see ResetReason.
  static ControlFrame reset(const FrameView& offending, ResetReason reason, std::uint64_t epoch = 0);
  /// Returns a frame that asks whether the peer's process is alive. `session` is the session of the asking
  /// side. The answer repeats `session` and `challenge`. `asked` is the session of the peer, or 0 if it is
  /// not known.
  static ControlFrame keep_alive(std::uint32_t session, std::uint64_t challenge, std::uint32_t asked = 0);
  /// Returns an answer that confirms that the process is alive. Like all answers, it is addressed to the
  /// session of the asking side.
  static ControlFrame alive(const FrameView& asked);
  /// Returns a frame that asks the peer's engine whether the peer has the address to which the frame goes.
  /// `session` is the session of the asking side, `asked` that of the peer.
  static ControlFrame path_challenge(std::uint32_t session, std::uint64_t challenge, std::uint32_t asked);
  /// Returns an answer that confirms that the path leads to the engine that has the session. The answer names
  /// the session of the asking side and repeats the challenge.
  static ControlFrame path_response(const FrameView& asked);
  /// Returns a frame that asks an endpoint whether `caller` belongs to the same process as that endpoint.
  /// `session` is the asking side's session with `caller`.
  static ControlFrame sibling_request(std::uint32_t session, std::uint64_t challenge,
                                      const RailBlock& caller);
  /// Returns the answer that the caller belongs to the process of the endpoint that was asked.
  static ControlFrame sibling_response(const FrameView& asked);

 private:
  ControlFrame(FrameKind kind, const FrameHeader& fields, ConstBytes block = {});

  std::array<std::byte, sizeof(FrameHeader) + sizeof(ResetBlock)> storage_{};
  std::size_t size_ = 0;
};

/// The largest number of bytes before the message in a datagram. The segment of a datagram has neither tag
/// nor id, but may have data.
inline constexpr std::size_t kDatagramHeaderMax = sizeof(FrameHeader) + 8 + 8;

/// The header of a datagram: a frame header without session or sequence, and the header of one segment of
/// kind eager. Datagrams are never acknowledged or retransmitted. A DatagramHeader owns the bytes of the
/// header. The caller keeps the payload, which follows the header on the wire.
class DatagramHeader {
 public:
  static constexpr std::size_t kPiecesMax = 8;

  /// `payload` must have at most kPiecesMax pieces. `segment.length` must be the sum of their lengths.
  DatagramHeader(const Segment& segment, std::span<const ConstBytes> payload,
                 Integrity integrity = Integrity::checksum);

  ConstBytes bytes() const { return {storage_.data(), size_}; }

 private:
  std::array<std::byte, sizeof(FrameHeader) + kSegmentHeaderMax> storage_;
  std::size_t size_;
};

}  // namespace cluster::wire
