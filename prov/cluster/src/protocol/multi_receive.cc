#include "protocol/multi_receive.h"

#include <algorithm>

namespace cluster::protocol {

RecvRequest* MultiReceive::cut(MultiRecvBuffer& buffer, std::size_t total) {
  RecvRequest* const piece = pool_.acquire<RecvRequest>();
  if (piece == nullptr) return nullptr;
  piece->buffer = &buffer;
  piece->context = buffer.context;
  piece->from = buffer.from;
  piece->tagged = buffer.tagged;
  piece->report = buffer.report;
  piece->capacity = std::min(total, buffer.capacity - buffer.used);
  piece->slices.add(buffer.buffers().front().subspan(buffer.used, piece->capacity));
  ++buffer.pieces;
  buffer.used += piece->capacity;
  buffer.closed = buffer.capacity - buffer.used < buffer.min_free;
  return piece;
}

void MultiReceive::close(MultiRecvBuffer& buffer, Status status) {
  buffer.closed = true;
  buffer.status = status;
  if (buffer.pieces == 0) end(buffer, false);
}

void MultiReceive::complete_piece(RecvRequest& piece, Status status) {
  MultiRecvBuffer& buffer = *piece.buffer;
  const bool plain = status == Status::ok && piece.report && piece.total <= piece.capacity;
  piece.last = plain && buffer.closed && buffer.pieces == 1 && buffer.status == Status::ok &&
               !context_.bindings.report_unknown_source;
  const bool reported = piece.last;
  reporter_.received(piece, status);
  pool_.release(piece);
  if (--buffer.pieces == 0 && buffer.closed) end(buffer, reported);
}

/// `reported`: the completion of the last piece has already reported the release.
void MultiReceive::end(MultiRecvBuffer& buffer, bool reported) {
  if (buffer.status != Status::ok) {
    buffer.last = true;
    reporter_.received(buffer, buffer.status);
  } else if (!reported) {
    reporter_.buffer_released(buffer);
  }
  pool_.release(buffer);
}

}  // namespace cluster::protocol
