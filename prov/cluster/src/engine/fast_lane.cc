#include "engine/fast_lane.h"

namespace cluster::engine {

void FastLane::review(Peer& peer) const {
  const protocol::EndpointBindings& bindings = protocol_.context.bindings;
  const protocol::Channel& channel = peer.channel;
  const bool plain = enabled_ && bindings.tx_queue != nullptr && bindings.send_counter == nullptr;
  const bool reachable = peer.outbox != nullptr && channel.carrier == peer.outbox.get() && !peer.local.failed;
  const bool first_in_order =
      channel.tx.ordered.empty() && channel.rma.writes_announced == 0 && channel.rma.reads == 0;
  if (plain && reachable && first_in_order) peer.local.lane = peer.outbox.get();
}

}  // namespace cluster::engine
