// Remote writes and reads of this side, each by the first of these ways that suits it:
//
//   InitiatorRma                       the transport reaches the peer's memory by itself (carrier/memory_access.h)
//   RmaWriteProtocol, RmaReadProtocol  the target's library serves it
//
// The second ones queue what has to wait, and try the first again when its turn comes.
#pragma once

#include "protocol/initiator_rma.h"
#include "protocol/rma_read_protocol.h"
#include "protocol/rma_write_protocol.h"

namespace cluster::protocol {

class RemoteAccess {
 public:
  RemoteAccess(const Context& context, OutgoingRequests& outgoing, CompletionReporter& reporter,
               ControlSender& control, PullReceiver& pulls)
      : alone_(context, outgoing, reporter, pulls),
        writes_(context, outgoing, reporter, control, pulls, alone_),
        reads_(context, outgoing, reporter, control, pulls, alone_) {}

  /// The first way, which schedules nothing. False: the operation has to take the second.
  bool write_at_once(Channel& channel, const WriteOp& op) { return alone_.write(channel, op); }
  bool read_at_once(Channel& channel, const ReadOp& op) { return alone_.read(channel, op); }
  Status write(Channel& channel, const WriteOp& op) {
    return write_at_once(channel, op) ? Status::ok : writes_.write(channel, op);
  }
  Status read(Channel& channel, const ReadOp& op) {
    return read_at_once(channel, op) ? Status::ok : reads_.read(channel, op);
  }

  /// Some accesses that were submitted to transports are not over.
  bool pending() const { return alone_.pending(); }
  /// By the transport: an access that was pending is over.
  void over(Channel& channel, carrier::AccessTicket ticket, Status status) {
    alone_.over(channel, ticket, status);
  }
  RmaWriteProtocol& writes() { return writes_; }
  RmaReadProtocol& reads() { return reads_; }

 private:
  InitiatorRma alone_;
  RmaWriteProtocol writes_;
  RmaReadProtocol reads_;
};

}  // namespace cluster::protocol
