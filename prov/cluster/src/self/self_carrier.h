// The carrier of an endpoint to itself: a queue in memory, since a flow or a ring cannot have one endpoint at
// both ends. Bounded like a ring: a segment that does not fit is refused until the queue has been read.
#pragma once

#include <memory>

#include "base/ring_queue.h"
#include "carrier/carrier.h"

namespace cluster::self {

class SelfCarrier final : public carrier::Carrier {
 public:
  SelfCarrier() : Carrier({.acknowledges_on_post = true, .on_this_node = true}) {}

  std::size_t payload_max(const wire::Segment& segment) const override;
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;

  struct Entry {
    wire::Segment segment;
    std::unique_ptr<std::byte[]> payload;
  };
  /// Takes the oldest segment out; there must be one.
  Entry pop();
  bool pending() const { return !queue_.empty(); }
  /// There was no memory for a segment: nothing more is taken until clear().
  bool ended() const { return ended_; }
  void clear();
  /// The oldest one; there must be one.
  const wire::Segment& front() const { return queue_.front().segment; }

 private:
  RingQueue<Entry> queue_;
  std::size_t bytes_ = 0;
  bool ended_ = false;
};

}  // namespace cluster::self
