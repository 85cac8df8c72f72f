// An endpoint of datagrams (FI_EP_DGRAM): each message is one frame, sent once, and each frame that arrives
// is one message. It has no flows and no rings, and reaches peers on this node through the kernel like all
// others.
//
// A datagram counts as sent from the address that it carries, as in UDP. The endpoint learns no path from it:
// the kernel decides where datagrams to that address go. Otherwise a forger could redirect the datagrams of
// others. The endpoint does not remember unknown sources, because they could fill the memory. All of them are
// the peer without a name.
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
  /// Takes in a frame. Refuses frames of flows at once, so that their sender does not retry for seconds.
  void receive(Time now, const wire::FrameView& view, const link::Path& from);

 private:
  link::Link& link_;
  Counters& counters_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  AnswerLimiter& answers_;
};

}  // namespace cluster::network
