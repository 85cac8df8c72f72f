// Packs segments into frames. Small ones share an open frame, copied; of large ones that stay where they are
// a frame's worth is referred to in user memory, behind what the frame holds already. What leaves a frame
// partly empty is copied even then, and the next one fills it: frames of one size, one behind the other,
// travel as one through half the kernel, and a short one in between is the end of that (link/link.h). A frame
// holds ordered segments or unordered ones, never both, so that bulk waits for nobody.
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

  /// The segment fits into an empty frame with `room` bytes for segments.
  void add(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode hold,
           carrier::Token token, std::size_t room);
  /// Payload that fills the open frame, or a new one if little would fit.
  std::size_t room_for(const wire::Segment& segment, std::size_t room) const;
  bool open() const { return open_ != nullptr; }
  /// True if the open frame has room for another segment like the last, of `room` bytes in all.
  bool takes_another(std::size_t room) const { return open_ != nullptr && open_->filled + last_ <= room; }
  /// Queues the open frame.
  void close();

 private:
  /// Shorter payloads are copied: cheaper than pieces of user memory.
  static constexpr std::size_t kReferenceMin = 256;
  /// Less is not worth a segment.
  static constexpr std::size_t kShareMin = 64;

  bool fits(const wire::Segment& segment, std::size_t size, std::size_t room) const {
    return open_ != nullptr && open_->ordered == wire::ordered(segment.kind) && open_->filled + size <= room;
  }
  bool add_reference(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                     std::size_t room);
  void add_copy(const wire::Segment& segment, const Gather& payload, carrier::Token token, std::size_t room);

  BodyPool& bodies_;
  SendWindow& frames_;
  std::unique_ptr<FrameBody> open_;
  std::size_t last_ = 0;  ///< bytes of the last segment in it
};

}  // namespace cluster::reliability
