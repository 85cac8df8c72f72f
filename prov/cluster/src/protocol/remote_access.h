// Remote writes and reads of this side, each by the first of these ways that suits it:
//
//   InitiatorRma                       memory that this process has mapped: it loads and stores by itself
//   PostedWrites                       a small write to a peer of this node whose library polls
//   InitiatorRma                       the kernel copies for it, where the peer's memory is in reach
//   RmaWriteProtocol, RmaReadProtocol  the target's library serves it
//
// A way that does not suit has left no trace. The last ones queue what has to wait, and try InitiatorRma again
// when its turn comes.
#pragma once

#include "protocol/initiator_rma.h"
#include "protocol/posted_writes.h"
#include "protocol/rma_read_protocol.h"
#include "protocol/rma_write_protocol.h"

namespace cluster::protocol {

class RemoteAccess {
 public:
  RemoteAccess(const Context& context, OutgoingRequests& outgoing, CompletionReporter& reporter,
               ControlSender& control, PullReceiver& pulls)
      : alone_(context, outgoing, reporter),
        posted_(context, alone_, reporter),
        writes_(context, outgoing, reporter, control, pulls, alone_),
        reads_(context, outgoing, reporter, control, pulls, alone_) {}

  /// The first two ways, which schedule nothing. False: nothing has been done.
  bool write_at_once(Channel& channel, const WriteOp& op) {
    return (maps_some(channel) && alone_.store(channel, op)) || posted_.post(channel, op);
  }
  bool read_at_once(Channel& channel, const ReadOp& op) {
    return maps_some(channel) && alone_.load(channel, op);
  }
  Status write(Channel& channel, const WriteOp& op) {
    if (write_at_once(channel, op)) return Status::ok;
    if (channel.rma.reached.regions != nullptr && alone_.write(channel, op)) return Status::ok;
    return writes_.write(channel, op);
  }
  Status read(Channel& channel, const ReadOp& op) {
    if (channel.rma.reached.regions != nullptr && alone_.read(channel, op)) return Status::ok;
    return reads_.read(channel, op);
  }

  PostedWrites& posted() { return posted_; }
  const PostedWrites& posted() const { return posted_; }
  RmaWriteProtocol& writes() { return writes_; }
  RmaReadProtocol& reads() { return reads_; }

 private:
  static bool maps_some(const Channel& channel) {
    const RemoteRegions* const regions = channel.rma.reached.regions.get();
    return regions != nullptr && regions->maps_some();
  }

  InitiatorRma alone_;
  PostedWrites posted_;
  RmaWriteProtocol writes_;
  RmaReadProtocol reads_;
};

}  // namespace cluster::protocol
