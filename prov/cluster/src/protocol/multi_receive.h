// Buffers that take many messages (FI_MULTI_RECV). Such a buffer keeps its place in the queue of posted
// receives. Each message that matches gets its own receive, called a piece. The memory of the piece is the
// front of the free space. So pieces lie without gaps, in the order of matching. A message longer than the
// free space is truncated.
//
// The buffer is closed when fewer bytes than its minimum are free, or when the application or a failure ends
// it. A closed buffer leaves the queue. Pieces of the buffer may complete later, and the buffer is complete
// with the last of them. Its release is reported exactly once, after all messages. If the last piece succeeds
// and is not truncated, the completion of this piece normally reports the release as well. Otherwise a
// separate entry reports the release.
#pragma once

#include "protocol/completion_reporter.h"

namespace cluster::protocol {

class MultiReceive {
 public:
  MultiReceive(const Context& context, IncomingPool& pool, CompletionReporter& reporter)
      : context_(context), pool_(pool), reporter_(reporter) {}

  /// Returns a piece for a message of `total` bytes, or null if no request is free. If the buffer is closed
  /// afterwards, the caller must take it out of the queue.
  RecvRequest* cut(MultiRecvBuffer& buffer, std::size_t total);
  /// Closes a buffer that the caller has taken out of the queue.
  void close(MultiRecvBuffer& buffer, Status status);
  /// Reports a piece and releases the piece's request. After the last piece of a closed buffer, releases the
  /// buffer's request too.
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
