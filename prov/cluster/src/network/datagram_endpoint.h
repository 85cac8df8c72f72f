// An endpoint of datagrams (FI_EP_DGRAM): each message is one frame, sent once, and the frame that comes is
// the message. It has no flows and no rings; peers on this node are reached through the kernel like all
// others.
//
// A datagram is believed to come from the address it carries, as in UDP. No path is learnt from it: the
// kernel decides where datagrams to that address go, because otherwise a forger could redirect those of others. Unknown
// sources are not remembered, because they could fill the memory. All of them are the peer without a name.
#pragma once

#include "link/link.h"
#include "network/answer_limiter.h"
#include "network/network_parts.h"
#include "protocol/messenger.h"

namespace cluster::network {

class DatagramEndpoint {
 public:
  DatagramEndpoint(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger,
                   AnswerLimiter& answers)
      : link_(*parts.link),
        counters_(parts.environment.counters),
        peers_(peers),
        messenger_(messenger),
        answers_(answers) {}

  Status send(const protocol::SendOp& op);
  /// Refuses frames of flows at once, so that their sender does not try for seconds.
  void receive(Time now, const wire::FrameView& view, const link::Path& from);

 private:
  link::Link& link_;
  Counters& counters_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  AnswerLimiter& answers_;
};

}  // namespace cluster::network
