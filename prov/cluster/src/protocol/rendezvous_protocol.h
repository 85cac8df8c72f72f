// Both sides of large messages, and the sender's side of large remote writes, which the target pulls in the
// same way. The sender announces a message, the receiver pulls it in pieces (pull_receiver.h), and the
// receiver's `done` completes the send.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class RendezvousProtocol : MessengerParts {
 public:
  explicit RendezvousProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- sender ---
  /// Announces the message at the head of the ordered queue. Returns false if the carrier has no space.
  bool announce(SendRequest& request);
  /// Queues the range of a message or write that the receiver has requested.
  void on_pull(Channel& channel, const wire::Segment& segment);
  /// Lets the receiver's device read a message or write if possible. Answers whether the device may read it,
  /// and how much of it lies in one piece.
  void on_expose(Channel& channel, const wire::Segment& segment);
  /// Posts one range of the request at the head of the bulk queue. Then the request leaves the queue, or
  /// moves to its end if more ranges wait. Returns false if the carrier has no space for the whole range.
  bool stream(PulledRequest& request);

  // --- receiver ---
  void on_announce(Channel& channel, const wire::Segment& segment);
};

}  // namespace cluster::protocol
