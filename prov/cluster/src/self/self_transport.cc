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
  if (self_->failed) return false;
  struct Source {
    bool next() {
      if (!carrier.pending()) return false;
      segment = carrier.front().segment;
      payload = {carrier.front().payload.get(), segment.length};
      return true;
    }
    bool taken() {
      carrier.pop_front();
      return true;
    }
    bool hold() const { return true; }

    SelfCarrier& carrier;
    wire::Segment segment{};
    ConstBytes payload{};
  } source{carrier_};
  return arrivals_.deliver(*self_, source, held_, kBurst) != 0;
}

/// Every peer whose name is an address of this endpoint uses the same queue. So all these peers are lost
/// together.
void SelfTransport::close(Peer& peer) {
  if (!holds(peer)) return;
  carrier_.clear();
  held_ = false;
  for (const std::unique_ptr<Peer>& each : context_.peers.all()) {
    if (each.get() != &peer && each->transport() == this)
      context_.peers.mark_failed(*each, Status::no_memory);
  }
}

}  // namespace cluster::self
