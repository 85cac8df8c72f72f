// The parts of one messenger, from the bottom up. The classes above these parts (messenger.h) inherit the
// references.
#pragma once

#include "protocol/matcher.h"
#include "protocol/outgoing_requests.h"

namespace cluster::protocol {

struct MessengerParts {
  const Context& context_;
  CompletionReporter& reporter_;  ///< reports completions and updates counters
  ControlSender& control_;        ///< sends control segments; lists channels with segments to post
  OutgoingRequests& outgoing_;    ///< operations of this side, and responses to peers
  PullReceiver& pulls_;           ///< requests whose bytes this side pulls from peers
  Matcher& matcher_;              ///< posted receives and unexpected messages
};

}  // namespace cluster::protocol
