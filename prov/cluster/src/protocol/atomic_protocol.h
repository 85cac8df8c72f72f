// Remote atomics, both sides. Only the target executes them, under the lock of its regions, in the order of
// messages and small writes: one after another, whatever peer and carrier they come from. The carrier
// delivers each segment exactly once, so each is executed exactly once.
//
// An operation travels in parts of whole elements (wire/atomic.h); each is answered, with the previous values
// if the operation fetches. Every part carries the length of what is left of the operation, so that the first
// one fails if the last one would, and then nothing is changed at all. At most kPartsMax parts of one
// side are unanswered: that bounds what the other must keep while its carrier has no free bytes.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class AtomicProtocol : MessengerParts {
 public:
  explicit AtomicProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- initiator ---
  Status post(Channel& channel, const AtomicRmaOp& op);
  /// Posts what the carrier takes of the request at the head of the queue. True if that is all.
  bool advance(AtomicRequest& request);
  void on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// One part is complete. After a failed one the other parts need not be sent.
  void answered(AtomicRequest& request, Status status);

  // --- target ---
  void on_request(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// Posts a response that was kept. False if the carrier has no free bytes.
  bool stream(AtomicResponse& response);

 private:
  void begin(Channel& channel, const AtomicRmaOp& op, const RmaRange& range);
  static void keep_copy(AtomicRequest& request, const AtomicRmaOp& op);
  void respond(Channel& channel, const wire::Segment& part, ConstBytes before);
};

}  // namespace cluster::protocol
