#include "reliability/frame_builder.h"

#include <utility>

namespace cluster::reliability {

void FrameBuilder::add(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
                       carrier::Token token, std::size_t capacity) {
  const bool refer = mode == carrier::PayloadMode::reference && payload.length >= kReferenceMin;
  if (refer && add_reference(segment, payload, token, capacity)) return;
  add_copy(segment, payload, token, capacity);
}

void FrameBuilder::close() {
  if (open_) frames_.push(std::move(open_));
}

std::size_t FrameBuilder::payload_space(const wire::Segment& segment, std::size_t capacity) const {
  const std::size_t header = wire::encoded_size(segment);
  return capacity - header - (fits(segment, header + kShareMin, capacity) ? open_->filled : 0);
}

bool FrameBuilder::add_reference(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                                 std::size_t capacity) {
  const std::size_t header = wire::encoded_size(segment);
  const std::size_t size = header + payload.length;
  const bool shares = fits(segment, size, capacity);
  const std::size_t filled = size + (shares ? open_->filled : 0);
  if (filled + header + kShareMin <= capacity) return false;
  std::array<ConstBytes, kPayloadPiecesMax> pieces;
  const std::size_t count = payload.pieces(pieces);
  if (count == 0) return false;
  if (!shares) {
    close();
    open_ = bodies_.take_slim();
    open_->ordered = wire::ordered(segment.kind);
  }
  open_->filled += wire::encode(segment, open_->segments() + open_->filled);
  for (std::size_t i = 0; i < count; ++i) open_->add_reference_to(pieces[i]);
  if (token != 0) open_->tokens.push_back(token);
  close();
  return true;
}

void FrameBuilder::add_copy(const wire::Segment& segment, const Gather& payload, carrier::Token token,
                            std::size_t capacity) {
  const std::size_t size = wire::encoded_size(segment) + payload.length;
  if (!fits(segment, size, capacity)) {
    close();
    open_ = bodies_.take();
    open_->ordered = wire::ordered(segment.kind);
  }
  std::byte* at = open_->segments() + open_->filled;
  payload.copy_to(at + wire::encode(segment, at));
  open_->filled += size;
  last_ = size;
  if (token != 0) open_->tokens.push_back(token);
}

}  // namespace cluster::reliability
