// A body is the content of one outgoing frame, kept until the peer has acknowledged the frame. The buffer of
// the body holds the segments. Before the segments there is space (the headroom) for what differs between
// transmissions: header, opening, acknowledgement. Large payloads stay in user memory, and the body refers to
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "carrier/carrier.h"
#include "wire/ack.h"
#include "wire/frame.h"
#include "wire/opening.h"
#include "wire/segment.h"

namespace cluster::reliability {

/// Size of the headroom: the header and the largest blocks that may follow it.
inline constexpr std::size_t kHeadroom = sizeof(wire::FrameHeader) + sizeof(wire::OpeningBlock) +
                                         // At most kRailsMax - 1 rail blocks name further addresses. One more
                                         // may name the sibling.
                                         wire::kRailsMax * sizeof(wire::RailBlock) +
                                         wire::kVerbsMax * sizeof(wire::VerbsBlock) +
                                         wire::ack_block_size(wire::kAckRangesMax);

/// The most pieces of user memory to which a frame may refer. A link takes a few more pieces in a frame,
/// because headers are pieces, too.
inline constexpr std::size_t kPayloadPiecesMax = 8;

struct FrameBody {
  explicit FrameBody(std::size_t segment_bytes)
      : storage(std::make_unique_for_overwrite<std::byte[]>(kHeadroom + segment_bytes)),
        capacity(segment_bytes) {}

  std::byte* segments() { return storage.get() + kHeadroom; }
  /// Returns how many bytes all segments have, payload in user memory included.
  std::size_t size() const { return filled + payload_size; }
  std::size_t footprint() const {
    return sizeof *this + kHeadroom + capacity + tokens.capacity() * sizeof(carrier::Token);
  }
  void add_reference_to(ConstBytes piece) {
    payload[payload_pieces++] = piece;
    payload_size += piece.size();
  }
  /// Replaces the content by one padding segment of `size` bytes. If the segment header alone is longer than
  /// `size`, the segment is only the header.
  void set_padding(std::size_t size);
  void reset() {
    filled = payload_pieces = payload_size = 0;
    ordered = only_answers = awaits_answer = false;
    tokens.clear();
  }

  std::unique_ptr<std::byte[]> storage;
  std::size_t capacity;    ///< bytes for segments after the headroom
  std::size_t filled = 0;  ///< bytes of segments in the buffer
  /// Payload of the last segment, if it stays in user memory. In the frame, this payload follows the bytes of
  /// the buffer.
  std::array<ConstBytes, kPayloadPiecesMax> payload;
  std::size_t payload_pieces = 0;
  std::size_t payload_size = 0;
  bool ordered = false;
  /// True if all segments are `done`. If so, the frame may wait until the owed acknowledgement is due.
  bool only_answers = false;
  bool awaits_answer = false;          ///< true if the application waits for the peer's `done`
  std::vector<carrier::Token> tokens;  ///< keeps its capacity when the body is reused
  std::unique_ptr<FrameBody> next;     ///< the next body in a stack of the pool
};

inline void FrameBody::set_padding(std::size_t size) {
  static constexpr std::array<std::byte, wire::kFrameMax / kPayloadPiecesMax + 1> blank{};
  wire::Segment segment;
  segment.kind = wire::SegmentKind::padding;
  const std::size_t header = wire::encoded_size(segment);
  std::size_t left = size > header ? size - header : 0;
  segment.length = static_cast<std::uint32_t>(left);
  reset();
  filled = wire::encode(segment, segments());
  for (; left > 0; left -= payload[payload_pieces - 1].size()) {
    add_reference_to(ConstBytes(blank).first(std::min(left, blank.size())));
  }
}

/// Every endpoint must be able to receive frames of this size.
inline constexpr std::size_t kFrameMin = 512;

/// Unused bodies that all flows of an engine share, so that a flow with no outstanding frames needs none.
/// There are two sizes: for a whole frame, and for a segment header whose payload lies in user memory. The
/// pool keeps at most kFreeBodiesMax bodies of each size.
class BodyPool {
 public:
  explicit BodyPool(std::size_t frame_max)
      : segment_bytes_(std::clamp(frame_max, kFrameMin, wire::kFrameMax) - sizeof(wire::FrameHeader)) {}

  /// Returns a body with space for the segments of the longest frame.
  std::unique_ptr<FrameBody> take() { return take(whole_, segment_bytes_); }
  /// Returns a body for the header of one segment whose payload lies in user memory.
  std::unique_ptr<FrameBody> take_slim() { return take(slim_, wire::kSegmentHeaderMax); }
  void give(std::unique_ptr<FrameBody> body) {
    body->reset();
    (body->capacity == segment_bytes_ ? whole_ : slim_).push(std::move(body));
  }

 private:
  /// Bodies of one size. The bodies themselves form the stack, so the stack needs no memory of its own.
  class Stack {
   public:
    Stack() = default;
    Stack(const Stack&) = delete;
    /// Frees the bodies one by one. If each of them freed the next one, the calls would be too deep.
    ~Stack() {
      while (top_ != nullptr) pop();
    }
    bool empty() const { return top_ == nullptr; }
    /// Frees the body if the stack already has kFreeBodiesMax bodies.
    void push(std::unique_ptr<FrameBody> body) {
      if (size_ == kFreeBodiesMax) [[unlikely]]
        return;
      ++size_;
      body->next = std::move(top_);
      top_ = std::move(body);
    }
    std::unique_ptr<FrameBody> pop() {
      --size_;
      std::unique_ptr<FrameBody> body = std::move(top_);
      top_ = std::move(body->next);
      return body;
    }

   private:
    std::unique_ptr<FrameBody> top_;
    std::size_t size_ = 0;
  };

  static std::unique_ptr<FrameBody> take(Stack& stack, std::size_t segment_bytes) {
    return stack.empty() ? std::make_unique<FrameBody>(segment_bytes) : stack.pop();
  }

  static constexpr std::size_t kFreeBodiesMax = 1024;

  std::size_t segment_bytes_;
  Stack whole_;
  Stack slim_;
};

}  // namespace cluster::reliability
