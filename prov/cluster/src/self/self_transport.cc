#include "self/self_transport.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/end_of_memory.h"

namespace cluster::self {

bool SelfCarrier::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
                       carrier::Token) {
  if (queue_.size() == kSegmentsMax || bytes_ + payload.length > kBytesMax) return false;
  return enough_memory_for([&] {
    Entry entry{segment, nullptr};
    if (payload.length > 0) entry.payload = std::make_unique_for_overwrite<std::byte[]>(payload.length);
    payload.copy_to(entry.payload.get());
    queue_.push_back(std::move(entry));
    bytes_ += payload.length;
  });
}

SelfCarrier::Entry SelfCarrier::pop() {
  Entry entry = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= entry.segment.length;
  return entry;
}

transport::OpenResult SelfTransport::open(Peer& peer, std::string& reason) {
  const auto is_rail = [&](const multipath::Rail& rail) { return rail.address == peer.name(); };
  if (peer.name() != context_.name && !std::ranges::any_of(rails_, is_rail))
    return transport::OpenResult::unreached;
  self_ = &context_.peers.find_or_add(context_.name);
  context_.reach.reached(peer, *this, carrier_, context_.settings.shm_eager_max);
  reason = "the peer is this endpoint";
  return transport::OpenResult::reached;
}

bool SelfTransport::receive_some() {
  std::size_t count = 0;
  for (; count < kBurst && carrier_.pending() && may_deliver(carrier_.front()); ++count) {
    const SelfCarrier::Entry entry = carrier_.pop();
    const ConstBytes payload(entry.payload.get(), entry.segment.length);
    const auto arrive = [&] { context_.messenger.arrive(self_->channel, entry.segment, payload); };
    if (!context_.peers.serve(*self_, arrive)) [[unlikely]]
      return true;
  }
  return count != 0;
}

/// All names by which this endpoint reaches itself share the queue, and are lost together.
void SelfTransport::close(Peer& peer) {
  if (!holds(peer)) return;
  carrier_.clear();
  for (const std::unique_ptr<Peer>& each : context_.peers.all()) {
    if (each.get() != &peer && each->transport() == this)
      context_.peers.mark_failed(*each, Status::no_memory);
  }
}

/// False: the segment stays where it is until the unexpected store has space for it.
bool SelfTransport::may_deliver(const wire::Segment& segment) {
  protocol::Matcher& matcher = context_.messenger.matcher();
  const bool was_held = std::exchange(held_, !matcher.ready(self_->channel, segment));
  if (held_ && !was_held) context_.admission.note_store_full();
  return !held_;
}

}  // namespace cluster::self
