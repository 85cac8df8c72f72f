#include "reliability/frame_builder.h"

#include <utility>

namespace cluster::reliability {

void FrameBuilder::add(const wire::Segment& segment, const Gather& payload, protocol::Hold hold,
                       protocol::Token token, std::size_t room) {
  const bool refer = hold == protocol::Hold::reference && payload.length >= kReferenceMin;
  if (refer && add_reference(segment, payload, token)) return;
  add_copy(segment, payload, token, room);
}

void FrameBuilder::close() {
  if (open_) frames_.push(std::move(open_));
}

bool FrameBuilder::add_reference(const wire::Segment& segment, const Gather& payload, protocol::Token token) {
  std::array<ConstBytes, kPayloadPiecesMax> pieces;
  const std::size_t count = payload.pieces(pieces);
  if (count == 0) return false;
  close();
  std::unique_ptr<FrameBody> body = bodies_.take_slim();
  body->filled = wire::encode(segment, body->segments());
  for (std::size_t i = 0; i < count; ++i) body->refer_to(pieces[i]);
  body->ordered = wire::ordered(segment.kind);
  if (token != 0) body->tokens.push_back(token);
  frames_.push(std::move(body));
  return true;
}

void FrameBuilder::add_copy(const wire::Segment& segment, const Gather& payload, protocol::Token token,
                            std::size_t room) {
  const bool ordered = wire::ordered(segment.kind);
  const std::size_t size = wire::encoded_size(segment) + payload.length;
  if (open_ && (open_->ordered != ordered || open_->filled + size > room)) close();
  if (!open_) {
    open_ = bodies_.take();
    open_->ordered = ordered;
  }
  std::byte* at = open_->segments() + open_->filled;
  payload.copy_to(at + wire::encode(segment, at));
  open_->filled += size;
  last_ = size;
  if (token != 0) open_->tokens.push_back(token);
}

}  // namespace cluster::reliability
