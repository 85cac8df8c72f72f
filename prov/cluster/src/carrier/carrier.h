// What the protocol needs from the layer below: it delivers segments to one peer, each exactly once and
// intact. There are three: a shared-memory ring (shm/), a flow over the network (reliability/), and the queue
// by which an endpoint reaches itself (self/).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/bytes.h"
#include "wire/segment.h"

namespace cluster::carrier {

/// Names a segment whose acknowledgement the caller wants reported; 0: it does not. Opaque to carriers.
using Token = std::uint64_t;

enum class PayloadMode : std::uint8_t {
  copy,       ///< the caller may change the payload on return
  reference,  ///< the payload stays valid until the token is reported (token not 0)
};

/// What a carrier can do. The protocol reads these and asks for no carrier by its kind.
struct Traits {
  /// A segment counts as acknowledged when post() returns, since it lies in memory that its receiver reads: post()
  /// copies every payload and ignores tokens.
  bool acknowledges_on_post = false;
  /// The peer runs on this node: what is pulled from it shares no wire with what is pulled from others.
  bool on_this_node = false;
};

class Carrier {
 public:
  explicit Carrier(const Traits& traits) : traits_(traits) {}
  virtual ~Carrier() = default;

  const Traits& traits() const { return traits_; }

  /// Largest payload that post() takes now in a segment of this shape, bytes.
  virtual std::size_t payload_max(const wire::Segment& segment) const = 0;

  /// The best size of the next segment of a payload that is longer than that and may be cut anywhere: it
  /// fills the free bytes that earlier segments left.
  virtual std::size_t fragment_max(const wire::Segment& segment) const { return payload_max(segment); }

  /// Largest message that may be sent eagerly. The receiver should pull longer ones, since it knows what else
  /// is sent to it.
  virtual std::size_t eager_limit() const { return std::numeric_limits<std::size_t>::max(); }

  /// Takes a segment with its payload (`segment.length` == payload.length). False: not enough free bytes, try
  /// again after progress. Ordered segments (wire::ordered) are delivered in the order they were posted, the
  /// others when they arrive. Unless it acknowledges on post (Traits), a token is reported once, by the engine and never from
  /// inside post(): when the peer's library has the segment and, if it is ordered, every ordered one before
  /// it. If the carrier ends before, it is not reported.
  virtual bool post(const wire::Segment& segment, const Gather& payload, PayloadMode mode, Token token) = 0;

  /// Takes the beginning of a payload that stays valid (PayloadMode::reference) as one or more segments like
  /// `segment`, each of which begins where the one before it ends; returns how many bytes it took, 0 if there
  /// are not enough free bytes. The token is reported once, when the peer has all that this call took.
  virtual std::size_t post_run(const wire::Segment& segment, const Gather& payload, Token token) {
    wire::Segment one = segment;
    const std::size_t part = std::min(payload.length, fragment_max(segment));
    one.length = static_cast<std::uint32_t>(part);
    const Gather front{payload.slices, payload.offset, part};
    return part != 0 && post(one, front, PayloadMode::reference, token) ? part : 0;
  }

 private:
  const Traits traits_;
};

/// The fast lane of a peer: short messages may take it while it is open, past all that the general road checks for each
/// message. Only the transport that opened a lane knows what stands at its end (shm/fast_lane.h).
class Lane {};

/// Posts a segment with a payload in one piece, which is copied, and of which no acknowledgement is reported.
inline bool post_copy(Carrier& carrier, wire::Segment segment, ConstBytes payload) {
  segment.length = static_cast<std::uint32_t>(payload.size());
  return carrier.post(segment, {{&payload, 1}, 0, payload.size()}, PayloadMode::copy, 0);
}

/// The size of the next segment of a payload with `left` bytes left, which is cut only if it must be.
inline std::size_t next_fragment(std::size_t left, const Carrier& carrier, const wire::Segment& segment) {
  return left <= carrier.payload_max(segment) ? left : std::min(left, carrier.fragment_max(segment));
}

}  // namespace cluster::carrier
