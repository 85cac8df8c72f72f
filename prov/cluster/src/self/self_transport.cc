#include "self/self_transport.h"

#include <algorithm>
#include <utility>

#include "transport/arrival.h"

namespace cluster::self {

bool SelfCarrier::post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
                       carrier::Token) {
  if (queue_.size() == kSegmentsMax || bytes_ + payload.length > kBytesMax) return false;
  Entry entry{segment, nullptr};
  if (payload.length > 0) {
    entry.payload = std::make_unique_for_overwrite<std::byte[]>(payload.length);
    payload.copy_to(entry.payload.get());
    bytes_ += payload.length;
  }
  queue_.push_back(std::move(entry));
  return true;
}

SelfCarrier::Entry SelfCarrier::pop() {
  Entry entry = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= entry.segment.length;
  return entry;
}

void SelfCarrier::put_back(Entry&& entry) {
  bytes_ += entry.segment.length;
  queue_.undo_pop(std::move(entry));
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
    SelfCarrier::Entry entry = carrier_.pop();
    const ConstBytes payload(entry.payload.get(), entry.segment.length);
    const auto arrive = [&] { context_.messenger.arrive(self_->channel, entry.segment, payload); };
    if (try_arrival(context_.peers, context_.admission, *self_, arrive)) continue;
    carrier_.put_back(std::move(entry));
    held_ = true;
    break;
  }
  return count != 0;
}

/// False: the segment stays where it is until the unexpected store has space for it, or the process memory.
bool SelfTransport::may_deliver(const wire::Segment& segment) {
  protocol::Matcher& matcher = context_.messenger.matcher();
  const bool space = matcher.ready(self_->channel, segment);
  const bool was_held = held_;
  held_ = !space || !matcher.can_report();
  if (held_ && !was_held) space ? context_.admission.note_no_memory() : context_.admission.note_store_full();
  return !held_;
}

}  // namespace cluster::self
