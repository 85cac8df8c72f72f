#include "reliability/send_queue.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cluster::reliability {
namespace {

/// The first bytes of a payload, as far as they lie in one piece.
ConstBytes front_piece(const Gather& payload) {
  std::size_t skip = payload.offset;
  for (const ConstBytes& slice : payload.slices) {
    if (skip < slice.size()) return slice.subspan(skip, std::min(slice.size() - skip, payload.length));
    skip -= slice.size();
  }
  return {};
}

}  // namespace

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
  if (!takes_more()) return false;
  assert(segment.length == payload.length);
  const std::size_t capacity = frame_size_.segment_capacity();
  if (wire::encoded_size(segment) + payload.length > capacity) return false;
  builder_.add(segment, payload, mode, token, capacity);
  return true;
}

/// What begins or ends in a frame with other segments, and what is in several pieces, goes the way of all
/// segments.
std::size_t SendQueue::post_run(const wire::Segment& segment, const Gather& payload, carrier::Token token) {
  if (!takes_more()) return 0;
  const std::size_t part = payload_max(segment);
  const ConstBytes piece = front_piece(payload);
  const std::size_t free_frames = window_.free_frames() - FrameBuilder::kFramesMax;
  const std::size_t frames = std::min({piece.size() / part, kQueuedMax - window_.queued(), free_frames});
  if (builder_.open() || frames < kRunMin) return Carrier::post_run(segment, payload, token);
  FrameRun run;
  run.first = window_.end();
  run.segment = segment;
  run.segment.length = static_cast<std::uint32_t>(part);
  run.payload = piece.first(frames * part);
  run.part = part;
  run.token = token;
  run.ordered = wire::ordered(segment.kind);
  window_.push_run(run);
  return run.payload.size();
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
