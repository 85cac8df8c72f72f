// Large messages, and the sender's side of everything that a peer pulls. The sender announces the message,
// the receiver pulls it in pieces (pull_receiver.h), and the receiver's `done` completes the send.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class RendezvousProtocol : MessengerParts {
 public:
  explicit RendezvousProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- sender ---
  /// Announces the message at the head of the queue. Returns false if the carrier has no space.
  bool announce(SendRequest& request);
  /// Queues a range of a message or write that the receiver requests.
  void on_pull(Channel& channel, const wire::Segment& segment);
  /// Lets the receiver's device read a message or write, and says how much of it lies in one piece.
  void on_expose(Channel& channel, const wire::Segment& segment);
  /// Posts one range of the request at the head of the bulk queue. If the request has more ranges, it then
  /// moves to the end of the queue. Returns false if the carrier has no space.
  bool stream(PulledRequest& request);

  // --- receiver ---
  void on_announce(Channel& channel, const wire::Segment& segment);
};

}  // namespace cluster::protocol
