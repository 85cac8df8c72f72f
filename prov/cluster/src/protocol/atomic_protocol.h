// Remote atomics: the code of the initiator and of the target. Only the target executes atomics. The target
// executes each atomic under the lock of its region table, so the atomics of all peers take effect one after
// another. Atomics from one peer stay in order with the messages and small writes that the peer posts to the
// same carrier. The carrier delivers each segment exactly once, so the target executes each part exactly
// once.
//
// The initiator splits each remote range of an operation into parts of whole elements (wire/atomic.h). The
// target answers each part. If the operation fetches, the answer carries the previous values. Every part
// states the total length of this part and all later parts of its range. Therefore the target can check a
// whole range when the first part arrives, and does not change any part of a range that the initiator must
// not access. At most kPartsMax parts of one initiator are unanswered. This limit bounds the number of
// answers that the target keeps while its carrier has no space.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class AtomicProtocol : MessengerParts {
 public:
  explicit AtomicProtocol(const MessengerParts& parts) : MessengerParts(parts) {}

  // --- initiator ---
  Status post(Channel& channel, const AtomicRmaOp& op);
  /// Posts as many parts of the request as the carrier takes and kPartsMax allows. The request must be at the
  /// head of the ordered queue. Returns true if the carrier has taken the whole request.
  bool advance(AtomicRequest& request);
  void on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// Counts the answer to one part of the request. If `status` is a failure, this side posts no further part
  /// of the request.
  void answered(AtomicRequest& request, Status status);

  // --- target ---
  void on_request(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  /// Posts a response that respond() has kept. Returns false if the carrier has no space.
  bool stream(AtomicResponse& response);

 private:
  void begin(Channel& channel, const AtomicRmaOp& op, const RmaRange& range);
  static void keep_copy(AtomicRequest& request, const AtomicRmaOp& op);
  void respond(Channel& channel, const wire::Segment& part, ConstBytes before);
};

}  // namespace cluster::protocol
