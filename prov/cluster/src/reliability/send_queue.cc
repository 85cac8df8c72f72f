#include "reliability/send_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cluster::reliability {

SendQueue::SendQueue(const Handshake& handshake, const FrameSize& frame_size,
                     const multipath::PathManager& paths, BodyPool& bodies, const FlowStatus& status)
    : handshake_(handshake),
      frame_size_(frame_size),
      paths_(paths),
      bodies_(bodies),
      status_(status),
      window_(handshake.opening().window),
      builder_(bodies, window_) {}

std::size_t SendQueue::payload_max(const wire::Segment& segment) const {
  return frame_size_.segment_capacity() - wire::encoded_size(segment);
}

std::size_t SendQueue::fragment_max(const wire::Segment& segment) const {
  return builder_.payload_space(segment, frame_size_.segment_capacity());
}

std::size_t SendQueue::eager_limit() const {
  return std::min(paths_.scheduler().window(), handshake_.window()) / 2 * frame_size_.segment_capacity();
}

bool SendQueue::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
                     carrier::Token token) {
  const bool space = window_.queued() < kQueuedMax && window_.has_space(FrameBuilder::kFramesMax);
  if (!status_.alive() || !space) return false;
  assert(segment.length == payload.length);
  const std::size_t capacity = frame_size_.segment_capacity();
  if (wire::encoded_size(segment) + payload.length > capacity) return false;
  builder_.add(segment, payload, mode, token, capacity);
  return true;
}

bool SendQueue::may_coalesce() const {
  return window_.outstanding() != 0 && window_.queued() == 0 &&
         builder_.fits_another(frame_size_.segment_capacity());
}

std::optional<Sequence> SendQueue::push_padding(std::size_t size) {
  if (!window_.has_space(FrameBuilder::kFramesMax + 1)) return std::nullopt;
  std::unique_ptr<FrameBody> body = bodies_.take_slim();
  body->set_padding(size);
  const Sequence sequence = window_.end();
  window_.push(std::move(body));
  return sequence;
}

}  // namespace cluster::reliability
