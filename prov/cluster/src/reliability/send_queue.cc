#include "reliability/send_queue.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/end_of_memory.h"

namespace cluster::reliability {
namespace {

/// Returns the contiguous bytes at the front of the payload.
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
    : Carrier({.dates_pulls = true}),
      handshake_(handshake),
      frame_size_(frame_size),
      paths_(paths),
      bodies_(bodies),
      status_(status),
      window_(handshake.opening().window, first_sequence(handshake.session())) {}

std::size_t SendQueue::payload_max(const wire::Segment& segment) const {
  return frame_size_.segment_capacity() - wire::encoded_size(segment);
}

std::size_t SendQueue::fragment_max(const wire::Segment& segment) const {
  const std::size_t capacity = frame_size_.segment_capacity();
  const std::size_t header = wire::encoded_size(segment);
  return capacity - header - (fits(segment, header + kShareMin, capacity) ? open_->filled : 0);
}

std::size_t SendQueue::eager_limit() const {
  return std::min(paths_.window(), handshake_.window()) / 2 * frame_size_.segment_capacity();
}

bool SendQueue::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
                     carrier::Token token) {
  if (!takes_more()) return false;
  assert(segment.length == payload.length);
  const std::size_t capacity = frame_size_.segment_capacity();
  if (wire::encoded_size(segment) + payload.length > capacity) return false;
  gathered_ = open_ || window_.queued() != 0 ? gathered_ + 1 : 1;
  const bool posted = enough_memory_for([&] {
    const bool refer = mode == carrier::PayloadMode::reference && payload.length >= kReferenceMin;
    if (!refer || !post_reference(segment, payload, token, capacity))
      post_copy(segment, payload, token, capacity);
  });
  if (!posted && open_ && open_->filled == 0) recycle(std::move(open_));
  return posted;
}

void SendQueue::open_frame(std::unique_ptr<FrameBody> body) {
  close_open_frame();
  open_ = std::move(body);
  open_->only_answers = true;
}

void SendQueue::note_joined(const wire::Segment& segment) {
  if (open_->only_answers) open_->ordered = wire::ordered(segment.kind);
  open_->only_answers &= segment.kind == wire::SegmentKind::done;
  open_->awaits_answer |= wire::awaits_done(segment.kind);
}

/// Posts a segment whose payload stays in user memory. Returns false if the segment would not fill the frame,
/// or if the payload has too many pieces.
bool SendQueue::post_reference(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                               std::size_t capacity) {
  const std::size_t header = wire::encoded_size(segment);
  const std::size_t size = header + payload.length;
  const bool shares = fits(segment, size, capacity);
  const std::size_t filled = size + (shares ? open_->filled : 0);
  if (filled + header + kShareMin <= capacity) return false;
  std::array<ConstBytes, kPayloadPiecesMax> pieces;
  const std::size_t count = payload.pieces(pieces);
  if (count == 0) return false;
  if (!shares) open_frame(bodies_.take_slim());
  window_.reserve_frame();
  if (token != 0) open_->tokens.push_back(token);
  note_joined(segment);
  open_->filled += wire::encode(segment, open_->segments() + open_->filled);
  for (std::size_t i = 0; i < count; ++i) open_->add_reference_to(pieces[i]);
  close_open_frame();
  return true;
}

void SendQueue::post_copy(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                          std::size_t capacity) {
  const std::size_t size = wire::encoded_size(segment) + payload.length;
  if (!fits(segment, size, capacity)) open_frame(bodies_.take());
  if (token != 0) open_->tokens.push_back(token);
  note_joined(segment);
  std::byte* at = open_->segments() + open_->filled;
  payload.copy_to(at + wire::encode(segment, at));
  open_->filled += size;
  last_ = size;
}

/// Posts one segment instead of a run if a frame is open. The same holds if the first piece of the payload,
/// kQueuedMax or the window allows fewer than kRunMin whole frames.
std::size_t SendQueue::post_run(const wire::Segment& segment, const Gather& payload, carrier::Token token) {
  if (!takes_more()) return 0;
  const std::size_t part = payload_max(segment);
  const ConstBytes piece = front_piece(payload);
  const std::size_t free_frames = window_.free_frames() - kFramesMax;
  const std::size_t frames = std::min({piece.size() / part, kQueuedMax - window_.queued(), free_frames});
  if (open_ || frames < kRunMin) return Carrier::post_run(segment, payload, token);
  FrameRun run;
  run.first = window_.end();
  run.segment = segment;
  run.segment.length = static_cast<std::uint32_t>(part);
  run.payload = piece.first(frames * part);
  run.part = part;
  run.token = token;
  run.ordered = wire::ordered(segment.kind);
  return enough_memory_for([&] { window_.push_run(run); }) ? run.payload.size() : 0;
}

/// Queues a frame with the answers of the open frame and an ordered segment of `size` bytes. Returns where
/// the caller must write the segment. If there is no memory, returns null, and the open frame keeps its
/// answers.
std::byte* SendQueue::push_alone(std::size_t size, carrier::Token token) {
  std::byte* segment = nullptr;
  enough_memory_for([&] {
    window_.reserve_frame();
    if (open_) [[unlikely]]
      open_->tokens.reserve(1);
    std::unique_ptr<FrameBody> body = open_ ? std::move(open_) : bodies_.take();
    if (token != 0) body->tokens.push_back(token);
    segment = body->segments() + body->filled;
    body->filled += size;
    body->ordered = true;
    body->only_answers = false;
    body->awaits_answer = token == 0;
    window_.push(std::move(body));
  });
  return segment;
}

bool SendQueue::post_answer(const wire::AnswerHeader& answer) {
  if (!open_) {
    if (!enough_memory_for([&] { open_ = bodies_.take(); })) return false;
    open_->only_answers = true;
  }
  answer.write(open_->segments() + open_->filled);
  open_->filled += answer.size();
  return true;
}

std::optional<Sequence> SendQueue::push_padding(std::size_t size) {
  if (!window_.has_space(kFramesMax + 1)) return std::nullopt;
  std::unique_ptr<FrameBody> body = bodies_.take_slim();
  body->set_padding(size);
  const Sequence sequence = window_.end();
  window_.push(std::move(body));
  return sequence;
}

}  // namespace cluster::reliability
