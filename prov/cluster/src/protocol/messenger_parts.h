// The parts of one messenger, from the bottom up. Each protocol above them inherits these members.
#pragma once

#include "protocol/matcher.h"
#include "protocol/outgoing_requests.h"

namespace cluster::protocol {

struct MessengerParts {
  const Context& context_;
  CompletionReporter& reporter_;  ///< reports completions and updates counters
  ControlSender& control_;        ///< control segments; lists of channels with segments to post
  OutgoingRequests& outgoing_;    ///< operations of this side and responses to peers: memory, limit, order
  PullReceiver& pulls_;           ///< everything that is pulled
  Matcher& matcher_;              ///< posted receives and unexpected messages
};

}  // namespace cluster::protocol
