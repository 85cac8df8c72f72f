// What the protocol has posted to one peer and the peer does not have yet: the carrier of a flow. post()
// packs segments into frames (FrameBuilder); closed frames wait in the send window for the frame sender.
//
// Long payloads that stay where they are become runs (post_run), without a body for each frame.
//
// Limits: at most kQueuedMax frames wait to be sent, so that what is posted later can still be ordered by the
// protocol, and a segment fits into one frame of the size that handshake and path allow now.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "carrier/carrier.h"
#include "multipath/path_manager.h"
#include "reliability/flow_status.h"
#include "reliability/frame_builder.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/send_window.h"

namespace cluster::reliability {

class SendQueue final : public carrier::Carrier {
 public:
  /// A flow that has ended takes nothing.
  SendQueue(const Handshake& handshake, const FrameSize& frame_size, const multipath::PathManager& paths,
            BodyPool& bodies, const FlowStatus& status);

  std::size_t payload_max(const wire::Segment& segment) const override;
  std::size_t fragment_max(const wire::Segment& segment) const override;
  /// Half of what may be in flight: a window that has grown has shown what the path takes at once.
  std::size_t eager_limit() const override;
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;
  /// Whole frames of one piece of memory become one run of the send window.
  std::size_t post_run(const wire::Segment& segment, const Gather& payload, carrier::Token token) override;
  bool acked_on_post() const override { return false; }

  /// True if frames are unacknowledged, none waits to be sent, and another segment like the last would fit
  /// into the open frame: then sending that frame may wait for it.
  bool may_coalesce() const;
  bool drained() const override { return !builder_.open() && window_.first() == window_.end(); }
  bool has_open_frame() const { return builder_.open(); }
  /// Queues the open frame, however full it is.
  void close_open_frame() { builder_.close(); }
  /// Queues a frame of `size` bytes of padding, if there is space; returns its sequence.
  std::optional<Sequence> push_padding(std::size_t size);
  void recycle(std::unique_ptr<FrameBody> body) { bodies_.give(std::move(body)); }

  SendWindow& window() { return window_; }
  const SendWindow& window() const { return window_; }

 private:
  bool takes_more() const {
    return status_.alive() && window_.queued() < kQueuedMax && window_.has_space(FrameBuilder::kFramesMax);
  }

  static constexpr std::size_t kQueuedMax = 88;
  /// Fewer frames are not worth a run.
  static constexpr std::size_t kRunMin = 4;

  const Handshake& handshake_;
  const FrameSize& frame_size_;
  const multipath::PathManager& paths_;
  BodyPool& bodies_;
  const FlowStatus& status_;
  SendWindow window_;
  FrameBuilder builder_;
};

}  // namespace cluster::reliability
