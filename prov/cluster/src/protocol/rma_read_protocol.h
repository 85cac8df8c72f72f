// Remote reads, both sides. The initiator requests as much at a time as its pull budget allows, exactly as it
// pulls messages (pull_receiver.h). The target streams out of the region; it copies each part under the lock
// of the regions, so that a region that has been closed is never read again.
#pragma once

#include "protocol/initiator_rma.h"
#include "protocol/pull_receiver.h"

namespace cluster::protocol {

class RmaReadProtocol {
 public:
  RmaReadProtocol(const Context& context, OutgoingRequests& outgoing, CompletionReporter& reporter,
                  ControlSender& control, PullReceiver& pulls, InitiatorRma& alone)
      : context_(context),
        outgoing_(outgoing),
        reporter_(reporter),
        control_(control),
        pulls_(pulls),
        alone_(alone) {}

  // --- initiator ---
  Status read(Channel& channel, const ReadOp& op);
  /// The turn of a read has come.
  void start(QueuedRead& queued);

  // --- target ---
  void on_request(Channel& channel, const wire::Segment& segment);
  /// Posts what is left of a response. False if the carrier has no free bytes.
  bool stream(ReadResponse& response);

 private:
  void begin(Channel& channel, const ReadOp& op, const RmaRange& range);
  void send_read_failed(Channel& channel, std::uint32_t receiver_id);

  const Context& context_;
  OutgoingRequests& outgoing_;
  CompletionReporter& reporter_;
  ControlSender& control_;
  PullReceiver& pulls_;
  InitiatorRma& alone_;
};

}  // namespace cluster::protocol
