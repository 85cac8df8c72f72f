// Sessions of one peer that are over. A late copy of their first frame must not open them again: what it
// carries may have been delivered already.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "reliability/handshake.h"

namespace cluster::engine {

class ClosedSessions {
 public:
  /// A validated session closes all earlier epochs with it. One that is not validated may name an invented
  /// epoch: then that session alone is refused.
  void add(const reliability::PeerSession& session, bool validated) {
    if (validated) {
      until_ = std::max(until_, session.epoch);
    } else {
      unvalidated_[next_++ % unvalidated_.size()] = session;
    }
    last_ = session.epoch;
  }
  bool contains(const reliability::PeerSession& other) const {
    return other.epoch <= until_ || std::ranges::find(unvalidated_, other) != unvalidated_.end();
  }
  bool contains(const wire::Opening& opening) const {
    return contains(reliability::PeerSession{opening.epoch, opening.session});
  }
  /// A new session needs a larger one.
  std::uint64_t epoch() const { return std::max(until_, last_); }

  /// When the peer was last closed.
  Time closed_at{};

 private:
  std::uint64_t until_ = 0;
  std::uint64_t last_ = 0;
  std::array<reliability::PeerSession, 8> unvalidated_{};  ///< the last ones
  std::size_t next_ = 0;
};

}  // namespace cluster::engine
