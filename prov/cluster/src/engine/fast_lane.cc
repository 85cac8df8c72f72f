#include "engine/fast_lane.h"

namespace cluster::engine {

void FastLane::attach() {
  const protocol::EndpointBindings& bindings = protocol_.context.bindings;
  const bool plain = bindings.receive_counter == nullptr && !bindings.report_unknown_source;
  rx_queue_ = plain ? bindings.rx_queue : nullptr;
}

void FastLane::review(Peer& peer) const {
  const protocol::EndpointBindings& bindings = protocol_.context.bindings;
  const protocol::Channel& channel = peer.channel;
  const bool plain = enabled_ && bindings.tx_queue != nullptr && bindings.send_counter == nullptr;
  const bool reachable = peer.outbox != nullptr && channel.carrier == peer.outbox.get() && !peer.local.failed;
  const bool first_in_order =
      channel.tx.ordered.empty() && channel.rma.writes_announced == 0 && channel.rma.reads == 0;
  if (plain && reachable && first_in_order) peer.local.lane = peer.outbox.get();
}

/// The caller does not read this queue, or other completions come before this one.
void FastLane::queue_arrival(const protocol::ShortArrival& arrival) const {
  rx_queue_->push_success([&](protocol::Completion& entry) {
    entry.context = arrival.context;
    entry.kind = protocol::Completion::Kind::receive;
    entry.tagged = arrival.tagged;
    entry.has_data = arrival.has_data;
    entry.releases_buffer = false;
    entry.tag = arrival.tag;
    entry.data = arrival.data;
    entry.buffer = arrival.buffer;
    entry.length = arrival.length;
    entry.source = arrival.source;
  });
}

}  // namespace cluster::engine
