// Remote writes, both sides. Small ones travel at once, in the order of messages; large ones are announced
// and pulled like messages, into the region they name. The target answers each of them but those of which the
// initiator sees by itself what becomes of them (shm/local_memory.h), since only it can tell whether the memory may be
// written: complete means that the bytes are in place.
//
// A message behind an announced write waits until that is complete, so that a send is always seen after the
// write before it. Other operations wait likewise if the endpoint was opened with such an order (Ordering).
#pragma once

#include "protocol/initiator_rma.h"
#include "protocol/pull_receiver.h"

namespace cluster::protocol {

class RmaWriteProtocol {
 public:
  RmaWriteProtocol(const Context& context, OutgoingRequests& outgoing, CompletionReporter& reporter,
                   ControlSender& control, PullReceiver& pulls, InitiatorRma& alone)
      : context_(context),
        outgoing_(outgoing),
        reporter_(reporter),
        control_(control),
        pulls_(pulls),
        alone_(alone) {}

  // --- initiator ---
  Status write(Channel& channel, const WriteOp& op);
  /// Posts what the carrier takes of the request at the head of the queue. True if that is all.
  bool advance(WriteRequest& request);

  // --- target ---
  void on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_next(Channel& channel, ConstBytes payload);
  void on_announce(Channel& channel, const wire::Segment& segment);

 private:
  void begin(Channel& channel, const WriteOp& op, const RmaRange& range);
  void store(Channel& channel, ConstBytes payload);

  const Context& context_;
  OutgoingRequests& outgoing_;
  CompletionReporter& reporter_;
  ControlSender& control_;
  PullReceiver& pulls_;
  InitiatorRma& alone_;
};

}  // namespace cluster::protocol
