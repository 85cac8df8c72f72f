// What one outgoing frame carries, kept until the peer has it: segment bytes in a buffer with room in
// front for everything that differs from sending to sending (header, opening, acknowledgement), and
// for bulk the payload where it lies in user memory.
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

namespace cluster::reliability {

/// Room in front of the segments: the most that a header and its blocks can take.
inline constexpr std::size_t kHeadroom = sizeof(wire::FrameHeader) + sizeof(wire::OpeningBlock) +
                                         (wire::kRailsMax - 1) * sizeof(wire::RailBlock) +
                                         wire::ack_block_size(wire::kAckRangesMax);

/// Slices of user memory that a frame refers to; a link takes a few pieces more than that.
inline constexpr std::size_t kPayloadPiecesMax = 8;

struct FrameBody {
  explicit FrameBody(std::size_t room)
      : storage(std::make_unique_for_overwrite<std::byte[]>(kHeadroom + room)), capacity(room) {}

  std::byte* segments() { return storage.get() + kHeadroom; }
  /// Bytes of segments, those in user memory included.
  std::size_t size() const { return filled + payload_size; }
  /// Bytes of memory it holds.
  std::size_t footprint() const {
    return sizeof *this + kHeadroom + capacity + tokens.capacity() * sizeof(carrier::Token);
  }
  void refer_to(ConstBytes piece) {
    payload[payload_pieces++] = piece;
    payload_size += piece.size();
  }
  /// Becomes one padding segment of `size` bytes, but not less than its header.
  void set_padding(std::size_t size);
  void reset() {
    filled = payload_pieces = payload_size = 0;
    ordered = false;
    tokens.clear();
  }

  std::unique_ptr<std::byte[]> storage;
  std::size_t capacity;                               ///< for segments, behind the headroom
  std::size_t filled = 0;                             ///< bytes of segments in the buffer
  std::array<ConstBytes, kPayloadPiecesMax> payload;  ///< follows them; only the last segment has any
  std::size_t payload_pieces = 0;
  std::size_t payload_size = 0;
  bool ordered = false;
  std::vector<carrier::Token> tokens;  ///< keeps its capacity when the body is used again
};

/// The smallest frame that every side must be able to receive.
inline constexpr std::size_t kFrameMin = 512;

/// Bodies are used again, by all flows of an engine: a flow with nothing on its way holds none. Two sizes,
/// whole frames and those whose payload lies elsewhere; at most kFreeBodiesMax of each lie idle.
class BodyPool {
 public:
  /// `frame_max` of the link.
  explicit BodyPool(std::size_t frame_max)
      : room_(std::clamp(frame_max, kFrameMin, wire::kFrameMax) - sizeof(wire::FrameHeader)) {}

  /// Room for a whole frame of segments.
  std::unique_ptr<FrameBody> take() { return take(whole_, room_); }
  /// Room for the header of one segment.
  std::unique_ptr<FrameBody> take_slim() { return take(slim_, wire::kSegmentHeaderMax); }
  void give(std::unique_ptr<FrameBody> body) {
    body->reset();
    Shelf& shelf = body->capacity == room_ ? whole_ : slim_;
    if (shelf.size() < kFreeBodiesMax) shelf.push_back(std::move(body));
  }

 private:
  using Shelf = std::vector<std::unique_ptr<FrameBody>>;

  static std::unique_ptr<FrameBody> take(Shelf& shelf, std::size_t room) {
    if (shelf.empty()) return std::make_unique<FrameBody>(room);
    std::unique_ptr<FrameBody> body = std::move(shelf.back());
    shelf.pop_back();
    return body;
  }

  static constexpr std::size_t kFreeBodiesMax = 1024;

  std::size_t room_;
  Shelf whole_;
  Shelf slim_;
};

}  // namespace cluster::reliability
