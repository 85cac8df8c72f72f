// The operation flags of transmits in the form that operations need. Those of the endpoint are translated
// when they are set, so that a plain fi_send tests no flag.
#pragma once

#include <rdma/fabric.h>

#include "protocol/ops.h"

namespace cluster::api {

struct TxFlags {
  // In the order of protocol::SendOp, so that they are copied at once.
  bool inject = false;
  bool report = true;
  bool more = false;
  bool fence = false;
  protocol::CompletionLevel completion_level = protocol::CompletionLevel::transmit;
  bool has_data = false;
};

/// Flags that are refused because ignoring them would break what they ask for. Messages may wait for their match one by one.
inline constexpr std::uint64_t kMessageFlagsUnsupported = FI_COMMIT_COMPLETE | FI_TRIGGER;
inline constexpr std::uint64_t kTxFlagsUnsupported = kMessageFlagsUnsupported | FI_MATCH_COMPLETE;
inline constexpr std::uint64_t kRxFlagsUnsupported = FI_TRIGGER;

/// `selective`: the queue was bound with FI_SELECTIVE_COMPLETION. Of several completion levels the strongest
/// counts; without any, the default FI_TRANSMIT_COMPLETE.
inline TxFlags tx_flags(std::uint64_t flags, bool selective) {
  TxFlags result;
  if (flags & FI_MATCH_COMPLETE) {
    result.completion_level = protocol::CompletionLevel::match;
  } else if (flags & FI_DELIVERY_COMPLETE) {
    result.completion_level = protocol::CompletionLevel::delivery;
  } else if ((flags & (FI_TRANSMIT_COMPLETE | FI_INJECT_COMPLETE)) == FI_INJECT_COMPLETE) {
    result.completion_level = protocol::CompletionLevel::inject;
  }
  result.report = !selective || (flags & FI_COMPLETION);
  result.inject = flags & FI_INJECT;
  result.has_data = flags & FI_REMOTE_CQ_DATA;
  result.more = flags & FI_MORE;
  result.fence = flags & FI_FENCE;
  return result;
}

}  // namespace cluster::api
