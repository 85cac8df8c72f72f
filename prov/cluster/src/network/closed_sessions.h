// Sessions of one peer that are over. A late copy of their first frame must not open them again: what it
// carries may have been delivered already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reliability/handshake.h"

namespace cluster::network {

class ClosedSessions {
 public:
  /// It closes all earlier epochs with it.
  void add(const reliability::PeerSession& session) { until_ = std::max(until_, session.epoch); }
  /// The peer's present incarnation begins there: what an earlier one has opened is over.
  void add_before(std::uint64_t epoch) {
    if (epoch != 0) until_ = std::max(until_, epoch - 1);
  }
  bool contains(const wire::Opening& opening) const { return opening.epoch <= until_; }
  /// A new session needs a larger one.
  std::uint64_t epoch() const { return until_; }

 private:
  std::uint64_t until_ = 0;
};

}  // namespace cluster::network
