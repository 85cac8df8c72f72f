// Messages without any guarantee (FI_EP_DGRAM): complete for the sender when they have left, and for the
// receiver if they arrive. A few may wait for their receive, as in any socket; the rest are dropped.
#pragma once

#include "protocol/matcher.h"

namespace cluster::protocol {

class DatagramProtocol {
 public:
  DatagramProtocol(const Context& context, CompletionReporter& reporter, Matcher& matcher,
                   PullReceiver& pulls)
      : context_(context), reporter_(reporter), matcher_(matcher), pulls_(pulls) {}

  void sent(const SendOp& op);
  /// A message is one segment.
  void arrived(Channel& channel, const wire::Segment& segment, ConstBytes payload);

 private:
  const Context& context_;
  CompletionReporter& reporter_;
  Matcher& matcher_;
  PullReceiver& pulls_;
};

}  // namespace cluster::protocol
