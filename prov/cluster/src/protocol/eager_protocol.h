// Small messages. The common case is one segment, posted at once. Nothing is remembered unless the sender
// waits for more than its buffer. Everything else takes a request and its turn in the channel's queue.
//
// The parts of a message arrive in order, without parts of other messages between them. So each channel
// assembles at most one message: in its receive if one is posted, otherwise in the store.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class EagerProtocol : MessengerParts {
 public:
  explicit EagerProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- sender ---
  static bool eligible(const Channel& channel, std::size_t length, CompletionLevel level) {
    return level != CompletionLevel::match && channel.allows_eager(length) && channel.credit.covers(length);
  }
  /// Posts a message in one segment unless something is in its way. Returns true if the message is handled,
  /// and sets `status`. Returns false if it has to wait in the queue.
  bool post_now(Channel& channel, const SendOp& op, Status& status);
  /// Posts as much of the request at the head of the queue as the carrier takes. Returns true if that is all.
  bool advance(SendRequest& request);

  // --- receiver ---
  void on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_next(Channel& channel, ConstBytes payload);

 private:
  void assembled(Channel& channel);
};

}  // namespace cluster::protocol
