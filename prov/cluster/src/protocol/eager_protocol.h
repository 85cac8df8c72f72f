// Small messages. The common case is one segment, posted at once, with nothing remembered unless the sender
// waits for more than its buffer; everything else takes a request and its turn in the channel's queue.
//
// The parts of a message arrive in order and without others between them, so at most one message per channel
// is being assembled: directly in its receive if one is posted, else in the store.
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
  /// Posts a message in one segment, if nothing is in its way. True if it is dealt with, with its status;
  /// false if it has to queue.
  bool post_now(Channel& channel, const SendOp& op, Status& status);
  /// Posts what the carrier takes of the request at the head of the queue. True if that is all.
  bool advance(SendRequest& request);

  // --- receiver ---
  void on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_next(Channel& channel, ConstBytes payload);

 private:
  void assembled(Channel& channel);
};

}  // namespace cluster::protocol
