// A carrier delivers segments of the protocol to one peer, each exactly once and intact. Each transport
// (transport/transport.h) gives each peer that it reaches a carrier of its own kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/bytes.h"
#include "wire/segment.h"

namespace cluster::carrier {

/// Identifies a segment or a run of segments. When the peer has acknowledged this segment or run, the
/// carrier's transport reports the token to the protocol. The token 0 asks for no report. Carriers do not
/// interpret tokens.
using Token = std::uint64_t;

enum class PayloadMode : std::uint8_t {
  copy,       ///< post() copies the payload; afterwards the caller may change it
  reference,  ///< the caller must keep the payload valid until the token (not 0) is reported
};

/// Properties of a carrier. The protocol uses these properties instead of asking which kind of carrier it
/// has.
struct Traits {
  /// A segment counts as acknowledged when post() returns, because post() puts the segment into memory that
  /// the receiver reads. post() copies every payload and ignores tokens.
  bool acknowledges_on_post = false;
  /// The transport reports when pulls leave (Messenger::on_transmit). When pulled bytes arrive, the transport
  /// also reports how long both hosts delayed the answer (ArrivalInfo). The pulls of all carriers with this
  /// property share a budget that adapts its size to these times (protocol/pull_budget.h). The pulls of all
  /// other carriers share a budget of fixed size.
  bool dates_pulls = false;
};

class Carrier {
 public:
  explicit Carrier(const Traits& traits) : traits_(traits) {}
  virtual ~Carrier() = default;

  const Traits& traits() const { return traits_; }

  /// Returns the size in bytes of the largest payload that post() can take now in a segment with this header.
  virtual std::size_t payload_max(const wire::Segment& segment) const = 0;

  /// For a payload that is longer than payload_max() and may be divided anywhere: returns the best size of
  /// its next segment. A segment of this size fills the space that earlier segments have left free in a
  /// frame.
  virtual std::size_t fragment_max(const wire::Segment& segment) const { return payload_max(segment); }

  /// Returns the size up to which messages should be eager. The receiver should pull longer messages, because
  /// only the receiver knows how much other peers send to it. (protocol/channel.h: kAlwaysEager is an
  /// exception.)
  virtual std::size_t eager_limit() const { return std::numeric_limits<std::size_t>::max(); }

  /// Returns true if the peer knows the segments that prepare reads by RDMA devices (device_reads.h).
  virtual bool device_reads() const { return false; }

  /// Takes a segment with its payload (`segment.length` == payload.length). Returns false if the carrier has
  /// no space for the segment now. In this case the caller tries again later. The carrier delivers ordered
  /// segments (wire::ordered) in the order of posting, and other segments as they arrive. Unless the carrier
  /// acknowledges on post (Traits), its transport reports the token once (Messenger::acked), and never from
  /// inside post(). It reports the token when the peer's library has the segment and, if the segment is
  /// ordered, every earlier ordered segment. If the carrier ends first, the token is never reported.
  virtual bool post(const wire::Segment& segment, const Gather& payload, PayloadMode mode, Token token) = 0;

  /// Takes the beginning of a payload that stays valid (PayloadMode::reference), as one or more consecutive
  /// segments. Their headers are like `segment`, except for length and offset. Returns how many bytes the
  /// carrier has taken, or 0 if it has no space now. The transport reports the token once, when the peer has
  /// all these bytes.
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

/// The fast lane of a peer. While the lane is open, a short message may take it. The message then skips the
/// checks that the general path makes for each message. Only the transport that opened the lane knows its
/// implementation (shm/fast_lane.h).
class Lane {};

/// Posts a segment with a contiguous payload. The carrier copies the payload and reports no acknowledgement.
inline bool post_copy(Carrier& carrier, wire::Segment segment, ConstBytes payload) {
  segment.length = static_cast<std::uint32_t>(payload.size());
  return carrier.post(segment, {{&payload, 1}, 0, payload.size()}, PayloadMode::copy, 0);
}

/// Returns the size of the next segment of a payload of which `left` bytes are not posted yet. If these bytes
/// fit into one segment, they are not divided.
inline std::size_t next_fragment(std::size_t left, const Carrier& carrier, const wire::Segment& segment) {
  return left <= carrier.payload_max(segment) ? left : std::min(left, carrier.fragment_max(segment));
}

}  // namespace cluster::carrier
