#include "self/self_transport.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/end_of_memory.h"

namespace cluster::self {

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
    if (!enough_memory_for(arrive)) [[unlikely]] {
      fail();
      return true;
    }
  }
  return count != 0;
}

/// There was no memory for something on its way: all names by which this endpoint reaches itself lose it.
void SelfTransport::fail() {
  for (const std::unique_ptr<Peer>& peer : context_.peers.all()) {
    if (holds(*peer)) context_.peers.mark_failed(*peer, Status::no_memory);
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
