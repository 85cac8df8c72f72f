// The parts of one messenger, from the bottom up. Each protocol above them inherits these members.
#pragma once

#include "protocol/matcher.h"
#include "protocol/outgoing_requests.h"

namespace cluster::protocol {

struct MessengerParts {
  const Context& context_;
  CompletionReporter& reporter_;  ///< every completion and counter
  ControlSender& control_;        ///< segments outside any order; the channels that have something to post
  OutgoingRequests& outgoing_;    ///< operations of this side and responses to peers: memory, limit, order
  PullReceiver& pulls_;           ///< everything that is pulled
  Matcher& matcher_;              ///< posted receives and unexpected messages
};

}  // namespace cluster::protocol
