// A datagram endpoint (FI_EP_DGRAM). Each message is one frame, which is sent once, and each frame that
// arrives is one message. The endpoint has no flows and no rings. It sends to peers on this node through the
// kernel, as to all others.
//
// As in UDP, the source address in a datagram counts as its sender. But the endpoint learns no path from an
// arriving datagram, because a forger could then redirect datagrams that are meant for others. The kernel
// routes each datagram that the endpoint sends. The endpoint does not remember unknown sources, because they
// could exhaust the memory. All unknown sources share one peer without a name.
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
  /// Processes a frame. Answers frames of flows with a reset, so that their sender does not retry for
  /// seconds.
  void receive(Time now, const wire::FrameView& view, const link::Path& from);

 private:
  link::Link& link_;
  Counters& counters_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  AnswerLimiter& answers_;
};

}  // namespace cluster::network
