// What one channel posts when its carrier has free bytes: first the control segments that were kept, then the
// ordered queue and the bulk queue in turns. It knows which protocol each kind of request belongs to.
#pragma once

#include "protocol/atomic_protocol.h"
#include "protocol/eager_protocol.h"
#include "protocol/rendezvous_protocol.h"
#include "protocol/rma_read_protocol.h"
#include "protocol/rma_write_protocol.h"

namespace cluster::protocol {

class ChannelSender {
 public:
  ChannelSender(const Context& context, OutgoingRequests& outgoing, ControlSender& control,
                EagerProtocol& eager, RendezvousProtocol& rendezvous, RmaWriteProtocol& writes,
                RmaReadProtocol& reads, AtomicProtocol& atomics)
      : context_(context),
        outgoing_(outgoing),
        control_(control),
        eager_(eager),
        rendezvous_(rendezvous),
        writes_(writes),
        reads_(reads),
        atomics_(atomics) {}

  /// A message that cannot be posted at once.
  Status enqueue(Channel& channel, const SendOp& op);
  /// Posts what the carrier takes; true if nothing is left.
  bool pump(Channel& channel);

 private:
  void take_turns(Channel& channel);
  bool advance(OutgoingRequest& request);
  bool advance_message(SendRequest& request);
  bool stream(OutgoingRequest& request);

  const Context& context_;
  OutgoingRequests& outgoing_;
  ControlSender& control_;
  EagerProtocol& eager_;
  RendezvousProtocol& rendezvous_;
  RmaWriteProtocol& writes_;
  RmaReadProtocol& reads_;
  AtomicProtocol& atomics_;
};

}  // namespace cluster::protocol
