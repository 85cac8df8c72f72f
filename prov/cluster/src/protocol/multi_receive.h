// Buffers that take many messages (FI_MULTI_RECV). Such a buffer keeps its place in the queue of posted
// receives. Each message that matches gets a receive of its own, a piece cut from the front of the free
// space. Pieces are packed without gaps, in the order of matching. A message longer than the free space is
// truncated.
//
// The buffer is closed when less than the minimum is free, or when the application or a failure ends it. It
// leaves the queue, and is complete with the last of its pieces, which may still be arriving. Its release is
// reported exactly once and last: by the completion of the last piece if that is a plain success, otherwise
// by an entry of its own.
#pragma once

#include "protocol/completion_reporter.h"

namespace cluster::protocol {

class MultiReceive {
 public:
  MultiReceive(const Context& context, IncomingPool& pool, CompletionReporter& reporter)
      : context_(context), pool_(pool), reporter_(reporter) {}

  /// Returns a receive for the next message, or null if there can be no more receives. If this closes the
  /// buffer, the caller takes it out of the queue.
  RecvRequest* cut(MultiRecvBuffer& buffer, std::size_t total);
  /// Closes a buffer that has been taken out of the queue.
  void close(MultiRecvBuffer& buffer, Status status);
  /// Reports a piece and releases its request. With the last piece it releases the buffer's request too.
  void complete_piece(RecvRequest& piece, Status status);

  /// Between hold() and unhold() no piece completes the buffer.
  static void hold(MultiRecvBuffer& buffer) { ++buffer.pieces; }
  void unhold(MultiRecvBuffer& buffer) {
    if (--buffer.pieces == 0 && buffer.closed) end(buffer, false);
  }

 private:
  void end(MultiRecvBuffer& buffer, bool reported);

  const Context& context_;
  IncomingPool& pool_;
  CompletionReporter& reporter_;
};

}  // namespace cluster::protocol
