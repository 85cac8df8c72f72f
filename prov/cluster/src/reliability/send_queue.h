// The carrier of a flow: what the protocol has posted to one peer and the peer does not have yet. post()
// packs segments into frames. Closed frames wait in the send window for the frame sender.
//
// Small segments are copied and share an open frame. A large payload that stays valid until it is
// acknowledged is not copied: each frame refers to its part in user memory, behind the segments that the open
// frame already holds. A part that would leave a frame partly empty is copied instead, so that the next
// segment can fill the frame: a shorter frame ends a super-frame (link/link.h). Long payloads of this kind
// become runs (post_run), which need no body for each frame.
//
// Limits: at most kQueuedMax frames wait to be sent, so that the protocol can still decide the order of later
// posts. A segment fits into one frame of the size that handshake and path allow now.
//
// A frame of answers alone (`done`) may stay open while an acknowledgement is owed. Both leave with the next
// frame that this side sends, or when the acknowledgement is due (Flow::transmit).
//
// Invariant: a frame holds ordered or unordered segments, never both. So unordered data never waits at the
// receiver for a missing frame. Answers are the exception: they join either kind, because a saved frame is
// worth more than a wait that a retransmission rarely causes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "carrier/carrier.h"
#include "multipath/path_manager.h"
#include "reliability/flow_status.h"
#include "reliability/frame_body.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/send_window.h"
#include "wire/segment.h"

namespace cluster::reliability {

class SendQueue final : public carrier::Carrier {
 public:
  /// A flow refuses a segment, as if it were full, if it has ended or there is no memory for a frame.
  SendQueue(const Handshake& handshake, const FrameSize& frame_size, const multipath::PathManager& paths,
            BodyPool& bodies, const FlowStatus& status);

  std::size_t payload_max(const wire::Segment& segment) const override;
  std::size_t fragment_max(const wire::Segment& segment) const override;
  /// Half of what may be in flight. A window that has grown shows what the path takes at once.
  std::size_t eager_limit() const override;
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  /// Turns whole frames of one piece of memory into one run of the send window.
  std::size_t post_run(const wire::Segment& segment, const Gather& payload, carrier::Token token) override;

  /// True if another segment like the last may wait in the open frame: it fits, frames are in flight, and
  /// none is queued.
  bool may_coalesce() const;
  bool drained() const { return !open_ && window_.first() == window_.end(); }
  bool has_open_frame() const { return open_ != nullptr; }
  /// Nothing is to be sent but answers, in the open frame.
  bool only_answers_left() const {
    return open_ != nullptr && open_->only_answers && window_.queued() == 0 && !window_.has_lost();
  }
  /// Queues the open frame, even if it is not full.
  void close_open_frame() {
    if (open_) window_.push(std::move(open_));
  }
  /// Queues a frame of `size` bytes of padding. Returns its sequence, or nothing if there is no space.
  std::optional<Sequence> push_padding(std::size_t size);
  void recycle(std::unique_ptr<FrameBody> body) { bodies_.give(std::move(body)); }

  SendWindow& window() { return window_; }
  const SendWindow& window() const { return window_; }

 private:
  bool takes_more() const {
    return status_.alive() && window_.queued() < kQueuedMax && window_.has_space(kFramesMax);
  }
  bool fits(const wire::Segment& segment, std::size_t size, std::size_t capacity) const {
    return open_ != nullptr && open_->filled + size <= capacity && mixes(*open_, segment);
  }
  static bool mixes(const FrameBody& open, const wire::Segment& segment) {
    return open.only_answers || segment.kind == wire::SegmentKind::done ||
           open.ordered == wire::ordered(segment.kind);
  }
  void open_frame(std::unique_ptr<FrameBody> body);
  void note_joined(const wire::Segment& segment);
  bool post_reference(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                      std::size_t capacity);
  void post_copy(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                 std::size_t capacity);

  static constexpr std::size_t kQueuedMax = 88;
  /// Frames that post() may queue, including the one that it leaves open.
  static constexpr std::size_t kFramesMax = 3;
  /// Shorter payloads are copied, because a copy is cheaper than pieces of user memory.
  static constexpr std::size_t kReferenceMin = 256;
  static constexpr std::size_t kShareMin = 64;
  static constexpr std::size_t kRunMin = 4;

  const Handshake& handshake_;
  const FrameSize& frame_size_;
  const multipath::PathManager& paths_;
  BodyPool& bodies_;
  const FlowStatus& status_;
  SendWindow window_;
  std::unique_ptr<FrameBody> open_;
  std::size_t last_ = 0;  ///< bytes of the last segment that was copied into the frame
};

}  // namespace cluster::reliability
