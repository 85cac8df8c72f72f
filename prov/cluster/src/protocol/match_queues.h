// The queues of an endpoint: untagged messages, tagged ones, and those that are part of collective operations, which
// no receive of the application ever matches.
#pragma once

#include <array>

#include "protocol/match_queue.h"

namespace cluster::protocol {

class MatchQueues {
 public:
  /// Of the application's messages.
  MatchQueue& application(bool tagged) { return tagged ? queues_[kTagged] : queues_[kUntagged]; }
  const MatchQueue& application(bool tagged) const { return tagged ? queues_[kTagged] : queues_[kUntagged]; }
  MatchQueue& collective() { return queues_[kCollective]; }
  /// Where a message, or what waits for one, belongs.
  template <typename Message>
  MatchQueue& of(const Message& message) {
    return message.collective ? collective() : application(message.tagged);
  }
  MatchQueue& of(const wire::Segment& first) {
    return first.collective() ? collective() : application(first.tagged());
  }

  /// Calls visit(channel) for the peer of each receive that waits for one peer alone.
  template <typename Visit>
  void each_directed(Visit&& visit) const {
    for (const MatchQueue& queue : queues_) queue.each_directed(visit);
  }
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }
  auto begin() const { return queues_.begin(); }
  auto end() const { return queues_.end(); }

 private:
  enum Index : std::size_t { kUntagged, kTagged, kCollective, kCount };

  std::array<MatchQueue, kCount> queues_;
};

}  // namespace cluster::protocol
