#include "api/fold.h"

namespace cluster::api {

bool fold_look(std::uint64_t flags, protocol::ReceiveOrder& order) {
  const bool claim = flags & FI_CLAIM;
  const bool discard = flags & FI_DISCARD;
  if (flags & FI_PEEK) {
    if (claim && discard) return false;
    order.peek = claim ? protocol::Peek::claim : discard ? protocol::Peek::discard : protocol::Peek::look;
    order.report = true;  // the completion is all there is to a look
    return true;
  }
  if (!claim || order.least_room != 0) return false;
  order.take_claimed = !discard;
  order.drop_claimed = discard;
  order.from = protocol::kAnyPeer;  // the context says which message
  return true;
}

}  // namespace cluster::api
