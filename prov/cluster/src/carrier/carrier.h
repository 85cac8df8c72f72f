// What the protocol needs from below: something that brings segments to one peer, once, intact.
// Two things are carriers: a shared-memory ring (shm/) and a flow over the network (reliability/).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/bytes.h"
#include "wire/segment.h"

namespace cluster::carrier {

/// Names what the poster wants to hear about again; 0 = nothing. Opaque to carriers.
using Token = std::uint64_t;

enum class PayloadMode : std::uint8_t {
  copy,       ///< the payload is the caller's again on return
  reference,  ///< the payload stays valid until the token is reported (token not 0)
};

class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Largest payload that post() takes now in a segment of this shape, bytes.
  virtual std::size_t payload_max(const wire::Segment& segment) const = 0;

  /// How much of a payload that is longer than that and may be cut anywhere goes best into the next segment:
  /// what fills the room that others have left.
  virtual std::size_t fragment_max(const wire::Segment& segment) const { return payload_max(segment); }

  /// How long a message may be that travels unasked. The receiver of longer ones had better ask for them: it
  /// knows who else sends to it.
  virtual std::size_t eager_limit() const { return std::numeric_limits<std::size_t>::max(); }

  /// Takes a segment with its payload (`segment.length` == payload.length), or answers false: no
  /// room, try again after progress. Ordered segments (wire::ordered) are delivered in the order
  /// they were posted; the others whenever they arrive. A token is reported exactly once, when the
  /// peer's library has the segment, and every ordered one before it if it is ordered itself, by
  /// whoever drives the carrier; never from inside post().
  virtual bool post(const wire::Segment& segment, const Gather& payload, PayloadMode hold, Token token) = 0;

  /// True if a segment that post() took is as good as delivered (it lies in memory that the peer
  /// reads): then tokens are not needed, and post() ignores them.
  virtual bool immediate() const = 0;
};

/// The next part of what has `left` bytes left and is not cut without need.
inline std::size_t next_fragment(std::size_t left, const Carrier& carrier, const wire::Segment& segment) {
  return left <= carrier.payload_max(segment) ? left : std::min(left, carrier.fragment_max(segment));
}

}  // namespace cluster::carrier
