#include "api/fold.h"

namespace cluster::api {

bool apply_peek_flags(std::uint64_t flags, protocol::RecvOp& order) {
  const bool claim = flags & FI_CLAIM;
  const bool discard = flags & FI_DISCARD;
  if (flags & FI_PEEK) {
    if (claim && discard) return false;
    order.peek = claim ? protocol::Peek::claim : discard ? protocol::Peek::discard : protocol::Peek::look;
    order.report = true;  // the completion is all there is to a look
    return true;
  }
  if (!claim || order.min_multi_recv != 0) return false;
  order.recv_claimed = !discard;
  order.discard_claimed = discard;
  order.from = protocol::kAddrUnspec;  // the context says which message
  return true;
}

}  // namespace cluster::api
