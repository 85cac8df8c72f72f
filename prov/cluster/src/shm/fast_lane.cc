#include "shm/fast_lane.h"

#include "base/end_of_memory.h"

namespace cluster::shm {

void FastLane::review(LocalPeer& peer) const {
  const protocol::EndpointBindings& bindings = context_.bindings;
  const protocol::Channel& channel = peer.channel;
  const bool plain = enabled_ && bindings.tx_queue != nullptr && bindings.send_counter == nullptr;
  const bool reachable =
      peer.outbox != nullptr && channel.carrier == peer.outbox.get() && !peer.common.failed;
  const bool first_in_order =
      channel.tx.ordered.empty() && channel.rma.writes_announced == 0 && channel.rma.reads == 0;
  if (plain && reachable && first_in_order) peer.common.lane = peer.outbox.get();
}

/// Stores the message as protocol::EagerProtocol stores a whole message. If that is not possible, for example
/// because there is no memory, does nothing and returns false. In this case the general path finds the
/// message in the ring.
bool FastLane::store(LocalPeer& peer, const shm::ShortMessage& message) const {
  const wire::EagerHeader& header = message.header;
  protocol::Channel& channel = peer.channel;
  if (rx_queue_ == nullptr || !matcher_.plentiful() || !channel.credit.allows(header.length)) return false;
  protocol::UnexpectedMessage* stored = nullptr;
  const auto keep = [&] {
    const protocol::MessageHeader kept{.tagged = header.tagged,
                                       .has_data = header.has_data,
                                       .tag = header.tag,
                                       .data = header.data,
                                       .total = header.length};
    stored = matcher_.store(channel, kept, header.length, ConstBytes(message.payload, header.length));
  };
  if (!enough_memory_for(keep) || stored == nullptr) return false;
  stored->charge = protocol::Credit::charge_of(header.length);
  channel.credit.accept(header.length);
  ++context_.counters.fast_received;
  peer.ring->pop();
  return true;
}

}  // namespace cluster::shm
