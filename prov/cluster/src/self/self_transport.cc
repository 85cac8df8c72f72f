#include "self/self_transport.h"

#include <algorithm>
#include <utility>

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
  // Delivering a segment may post to the queue, so each segment leaves the queue before its delivery.
  struct Source {
    bool next() {
      if (!carrier.pending()) return false;
      entry = carrier.pop();
      payload = {entry.payload.get(), entry.segment.length};
      return true;
    }
    bool taken() const { return true; }
    bool hold(bool) {
      carrier.put_back(std::move(entry));
      return true;
    }

    SelfCarrier& carrier;
    SelfCarrier::Entry entry{};
    const wire::Segment& segment = entry.segment;
    ConstBytes payload{};
  } source{carrier_};
  return arrivals_.deliver(*self_, source, held_, kBurst) != 0;
}

}  // namespace cluster::self
