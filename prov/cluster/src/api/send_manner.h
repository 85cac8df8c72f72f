// Operation flags, translated once: what they mean for a send. The flags an endpoint was opened with
// are kept in this form, so a plain fi_send looks at no flag at all.
#pragma once

#include <rdma/fabric.h>

#include "protocol/order.h"

namespace cluster::api {

struct SendManner {
  protocol::Promise promise = protocol::Promise::transmitted;
  bool report = true;
  bool inject = false;
  bool has_data = false;
  bool more = false;
  bool fence = false;
};

/// Promises and orders that are not kept here: asking for them is an error, not a wish.
inline constexpr std::uint64_t kSendFlagsRefused =
    FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_MULTICAST | FI_TRIGGER;
inline constexpr std::uint64_t kReceiveFlagsRefused = FI_MULTI_RECV | FI_TRIGGER;

/// `selective`: the queue was bound to report only what FI_COMPLETION asks for. Of several
/// completion levels the strongest counts; without any, the default of a reliable endpoint.
inline SendManner send_manner(std::uint64_t flags, bool selective) {
  SendManner manner;
  if (flags & FI_DELIVERY_COMPLETE) {
    manner.promise = protocol::Promise::delivered;
  } else if ((flags & (FI_TRANSMIT_COMPLETE | FI_INJECT_COMPLETE)) == FI_INJECT_COMPLETE) {
    manner.promise = protocol::Promise::buffer_free;
  }
  manner.report = !selective || (flags & FI_COMPLETION);
  manner.inject = flags & FI_INJECT;
  manner.has_data = flags & FI_REMOTE_CQ_DATA;
  manner.more = flags & FI_MORE;
  manner.fence = flags & FI_FENCE;
  return manner;
}

}  // namespace cluster::api
