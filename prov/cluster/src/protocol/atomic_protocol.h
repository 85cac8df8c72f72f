// Remote atomics, both sides. Only the target executes them, under the lock of its regions. It executes all
// peers' atomics one after another, in the order of messages and small writes. The carrier delivers each
// segment exactly once, so each is executed exactly once.
//
// An operation travels in parts of whole elements (wire/atomic.h). The target answers each part, with the
// previous values if the operation fetches. Every part carries the length of the rest of the operation. So
// the first part fails if the last one would, and then nothing changes at all. At most kPartsMax parts of one
// side are unanswered, which limits what the other side keeps while its carrier has no space.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class AtomicProtocol : MessengerParts {
 public:
  explicit AtomicProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- initiator ---
  Status post(Channel& channel, const AtomicRmaOp& op);
  /// Posts as much of the request at the head of the queue as the carrier takes. Returns true if that is all.
  bool advance(AtomicRequest& request);
  void on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// One part is complete. After a failed part the other parts need not be sent.
  void answered(AtomicRequest& request, Status status);

  // --- target ---
  void on_request(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// Posts a response that was kept. Returns false if the carrier has no space.
  bool stream(AtomicResponse& response);

 private:
  void begin(Channel& channel, const AtomicRmaOp& op, const RmaRange& range);
  static void keep_copy(AtomicRequest& request, const AtomicRmaOp& op);
  void respond(Channel& channel, const wire::Segment& part, ConstBytes before);
};

}  // namespace cluster::protocol
