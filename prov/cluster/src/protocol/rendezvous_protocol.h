// Large messages, and the sender's side of whatever a peer pulls. The sender announces the message, the
// receiver pulls it in pieces (pull_receiver.h), and its `done` completes the send.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class RendezvousProtocol : MessengerParts {
 public:
  explicit RendezvousProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- sender ---
  /// Announces the message at the head of the queue. False if the carrier has no free bytes.
  bool announce(SendRequest& request);
  /// The receiver requests a range of a message or write.
  void on_pull(Channel& channel, const wire::Segment& segment);
  /// Posts one range of the request at the head of the bulk queue, which then goes behind the others. False
  /// if the carrier has no free bytes.
  bool stream(PulledRequest& request);

  // --- receiver ---
  void on_announce(Channel& channel, const wire::Segment& segment);
};

}  // namespace cluster::protocol
