// Packs segments into frames. Small segments are copied and share an open frame. Of a large payload that
// stays valid until it is acknowledged, a frame's worth is referred to in user memory, behind what the open
// frame holds already. What would leave a frame partly empty is copied instead, and the next segment fills
// it: equally long frames, one behind the other, travel as one super-frame through half of the kernel, and a
// shorter one ends that (link/link.h).
//
// Invariant: a frame holds ordered segments or unordered ones, never both, so that unordered data never waits
// for a missing frame at the receiver.
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "carrier/carrier.h"
#include "reliability/frame_body.h"
#include "reliability/send_window.h"
#include "wire/segment.h"

namespace cluster::reliability {

class FrameBuilder {
 public:
  FrameBuilder(BodyPool& bodies, SendWindow& frames) : bodies_(bodies), frames_(frames) {}

  /// Frames that add() may queue, the one it leaves open included.
  static constexpr std::size_t kFramesMax = 3;

  /// The segment fits into an empty frame with `capacity` bytes for segments.
  void add(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
           carrier::Token token, std::size_t capacity);
  /// Payload that fills the open frame, or a new one if little would fit.
  std::size_t payload_space(const wire::Segment& segment, std::size_t capacity) const;
  bool open() const { return open_ != nullptr; }
  /// True if another segment like the last fits into the open frame.
  bool fits_another(std::size_t capacity) const {
    return open_ != nullptr && open_->filled + last_ <= capacity;
  }
  /// Queues the open frame.
  void close();

 private:
  /// Shorter payloads are copied: cheaper than pieces of user memory.
  static constexpr std::size_t kReferenceMin = 256;
  /// Less is not worth a segment.
  static constexpr std::size_t kShareMin = 64;

  bool fits(const wire::Segment& segment, std::size_t size, std::size_t capacity) const {
    return open_ != nullptr && open_->ordered == wire::ordered(segment.kind) &&
           open_->filled + size <= capacity;
  }
  bool add_reference(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                     std::size_t capacity);
  void add_copy(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                std::size_t capacity);

  BodyPool& bodies_;
  SendWindow& frames_;
  std::unique_ptr<FrameBody> open_;
  std::size_t last_ = 0;  ///< bytes of the last segment in it
};

}  // namespace cluster::reliability
