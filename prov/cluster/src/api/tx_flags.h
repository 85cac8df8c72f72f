// Operation flags, translated once: what they mean for a send. The flags an endpoint was opened with
// are kept in this form, so a plain fi_send looks at no flag at all.
#pragma once

#include <rdma/fabric.h>

#include "protocol/ops.h"

namespace cluster::api {

struct TxFlags {
  protocol::CompletionLevel completion_level = protocol::CompletionLevel::transmit;
  bool report = true;
  bool inject = false;
  bool has_data = false;
  bool more = false;
  bool fence = false;
};

/// Promises and orders that are not kept here: asking for them is an error, not a wish.
inline constexpr std::uint64_t kTxFlagsUnsupported =
    FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_MULTICAST | FI_TRIGGER;
inline constexpr std::uint64_t kRxFlagsUnsupported = FI_TRIGGER;

/// `selective`: the queue was bound to report only what FI_COMPLETION asks for. Of several
/// completion levels the strongest counts; without any, the default of a reliable endpoint.
inline TxFlags tx_flags(std::uint64_t flags, bool selective) {
  TxFlags manner;
  if (flags & FI_DELIVERY_COMPLETE) {
    manner.completion_level = protocol::CompletionLevel::delivery;
  } else if ((flags & (FI_TRANSMIT_COMPLETE | FI_INJECT_COMPLETE)) == FI_INJECT_COMPLETE) {
    manner.completion_level = protocol::CompletionLevel::inject;
  }
  manner.report = !selective || (flags & FI_COMPLETION);
  manner.inject = flags & FI_INJECT;
  manner.has_data = flags & FI_REMOTE_CQ_DATA;
  manner.more = flags & FI_MORE;
  manner.fence = flags & FI_FENCE;
  return manner;
}

}  // namespace cluster::api
