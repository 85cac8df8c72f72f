// A carrier made of a queue in memory, for tests of the components above carriers: bounded, optionally
// with segments small enough to cut messages into parts.
#pragma once

#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "carrier/carrier.h"

namespace cluster::test {

class QueueCarrier final : public carrier::Carrier {
 public:
  struct Item {
    wire::Segment segment;
    std::vector<std::byte> payload;
    carrier::Token token;
  };

  std::size_t capacity = 1000;         ///< segments it holds
  std::size_t segment_payload = 1000;  ///< largest payload of one
  std::size_t eager_max = std::numeric_limits<std::size_t>::max();
  std::deque<Item> items;

  explicit QueueCarrier(bool ring = false) : Carrier({.acknowledges_on_post = ring, .dates_pulls = !ring}) {}

  /// Before anything is posted: it becomes like a ring in shared memory, or not.
  void set_ring(bool ring) {
    const std::size_t segments = capacity, payload = segment_payload, eager = eager_max;
    std::destroy_at(this);
    std::construct_at(this, ring);
    capacity = segments;
    segment_payload = payload;
    eager_max = eager;
  }

  std::size_t payload_max(const wire::Segment&) const override { return segment_payload; }
  std::size_t eager_limit() const override { return eager_max; }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode,
            carrier::Token token) override {
    if (items.size() >= capacity) return false;
    Item item{segment, std::vector<std::byte>(payload.length), token};
    payload.copy_to(item.payload.data());
    items.push_back(std::move(item));
    return true;
  }
};

}  // namespace cluster::test
