// Buffers that take many messages (FI_MULTI_RECV). Such a buffer keeps its place in the match queue;
// each message it gets is a receive of its own, a piece cut off the front of what is left: packed without
// gaps, in the order of matching. A message longer than what is left is truncated.
//
// When less than the least room is left, or when the application or a status ends it, the buffer is
// closed: it leaves the queue, and ends with the last of its pieces, which may still be on their way. That
// it is the application's again is told once, always, and after everything else about it: by the last
// piece's completion if that is a plain success, else by an entry of its own.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {

Status Messenger::post_buffer(Channel* from, const RecvOp& order) {
  RecvRequest* const taken = receives_.acquire();
  if (taken == nullptr) return Status::again;
  RecvRequest& buffer = *taken;
  fill(buffer, order, from);
  untagged_.post(buffer);
  ++buffer.pieces;  // holds the buffer until all that waits for it is served
  while (!buffer.closed) {
    UnexpectedMessage* const message = untagged_.find(from, order.tag, order.ignore);
    if (message == nullptr) break;
    RecvRequest* const piece = cut(buffer, message->total);
    if (piece == nullptr) break;
    take(*piece, *message);
  }
  --buffer.pieces;
  if (buffer.closed && buffer.pieces == 0) end_buffer(buffer, false);
  return Status::ok;
}

/// A receive for the next message; null if there can be no more receives.
RecvRequest* Messenger::cut(RecvRequest& buffer, std::size_t total) {
  RecvRequest* const piece = receives_.acquire();
  if (piece == nullptr) return nullptr;
  piece->buffer = &buffer;
  piece->context = buffer.context;
  piece->from = buffer.from;
  piece->report = buffer.report;
  piece->capacity = std::min(total, buffer.capacity - buffer.used);
  piece->slices.add(buffer.slices.all().front().subspan(buffer.used, piece->capacity));
  ++buffer.pieces;
  buffer.used += piece->capacity;
  if (buffer.capacity - buffer.used < buffer.min_multi_recv) {
    untagged_.withdraw(buffer);
    buffer.closed = true;
  }
  return piece;
}

/// It has been taken out of the queue before its time.
void Messenger::close_buffer(RecvRequest& buffer, Status status) {
  buffer.closed = true;
  buffer.ending = status;
  if (buffer.pieces == 0) end_buffer(buffer, false);
}

void Messenger::end_piece(RecvRequest& piece, Status status) {
  RecvRequest& buffer = *piece.buffer;
  const bool plain = status == Status::ok && piece.report && piece.total <= piece.capacity;
  piece.last = plain && buffer.closed && buffer.pieces == 1 && buffer.ending == Status::ok &&
               !bindings_.report_unknown_source;
  report_message(piece, status);
  if (--buffer.pieces == 0 && buffer.closed) end_buffer(buffer, piece.last);
}

/// `told`: the completion of its last piece has said so.
void Messenger::end_buffer(RecvRequest& buffer, bool told) {
  if (buffer.ending != Status::ok) {
    buffer.last = true;
    report_message(buffer, buffer.ending);
  } else if (!told && bindings_.receives != nullptr) {
    Completion completion;
    completion.context = buffer.context;
    completion.kind = Completion::Kind::buffer_released;
    completion.releases_buffer = true;
    completion.buffer = buffer.first_byte();
    bindings_.receives->push(completion);
  }
  receives_.release(buffer);
}

}  // namespace cluster::protocol
