// Sends and receives small messages. Most of them fit into one segment, which this side posts at once. After
// that, the message needs a request only if this side must still report its completion or a possible failure.
// A message that cannot be posted at once gets a request and waits in the channel's queue.
//
// The parts of a message arrive in order, without parts of other messages between them. So each channel
// assembles at most one message at a time. If a posted receive matches, the message is assembled in the
// buffer of the receive, otherwise in the store of unexpected messages.
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
  /// Posts a message in one segment, if the message fits and nothing has to go before it. Returns true and
  /// sets `status` if the message is posted, or if too many operations are in progress (Status::again).
  /// Returns false if the message has to go through the queue.
  bool post_now(Channel& channel, const SendOp& op, Status& status);
  /// Posts as much of the request as the carrier takes. The request must be at the head of the ordered queue.
  /// Returns true if the carrier has taken the whole request.
  bool advance(SendRequest& request);

  // --- receiver ---
  void on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_next(Channel& channel, ConstBytes payload);
  /// Like on_next(), for bytes that are in place already.
  void on_stored(Channel& channel, std::size_t bytes);

 private:
  void assembled(Channel& channel);
};

}  // namespace cluster::protocol
