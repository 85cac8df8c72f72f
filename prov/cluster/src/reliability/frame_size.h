// How long frames to the peer may be (docs/protocol.md 4.7). Both links say what they take, but a network
// between them may take less and silently drop longer frames. Before the flow sends frames longer than
// kBasePlpmtu, a PMTU probe and its companion find out whether such frames arrive (RFC 8899). The base itself
// is not probed, because that would cost each session a long frame.
//
// A shorter frame that was sent repeatedly without effect has met a black hole. Frames are then at most
// kInitialFrameSize long, and after a second black hole at most least(), which every path carries. Then the
// search begins again, because an outage, or a peer that computes, looks the same until the first probe
// arrives. Queued and outstanding frames keep their sequences, so frames that have become too long leave in
// parts (PartEncoder).
//
// Invariant: at most one PMTU probe is outstanding. The flow's own timers retransmit it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/log.h"
#include "base/sequence.h"
#include "multipath/path_manager.h"
#include "reliability/frame_body.h"
#include "reliability/handshake.h"

namespace cluster::reliability {

class SendQueue;

class FrameSize {
 public:
  /// `overhead`: bytes that the link adds to each frame.
  FrameSize(const Handshake& handshake, const multipath::PathManager& paths, Log& log,
            std::size_t overhead = 0)
      : handshake_(handshake),
        paths_(paths),
        log_(log),
        initial_max_(kInitialFrameSize - overhead),
        least_(kLeastFrameSize - overhead),
        base_(kBasePlpmtu - overhead),
        path_max_(base_),
        proven_(base_) {}

  /// The largest frame to send, header included: both links and the path carry it.
  std::size_t frame_max() const {
    return std::min(handshake_.link_frame_max(), handshake_.knows_peer() ? path_max_ : initial_max_);
  }
  std::size_t segment_capacity() const {
    return frame_max() - sizeof(wire::FrameHeader) - handshake_.opening_size();
  }
  /// True if the search is complete (RFC 8899 5.2).
  bool search_complete() const { return probe_size() <= proven_; }

  /// True if a frame of `size` bytes that was sent `sendings` times has probably met a black hole. `size` is
  /// that of the longest part if the frame leaves in parts.
  bool suspects(std::size_t size, std::uint32_t sendings) const {
    return sendings >= (size > initial_max_ ? 1 : 2) * kBlackHoleSendings && size > least() &&
           handshake_.peer_takes_parts();
  }
  /// Shortens frames from now on. Frames before `end` keep their length.
  void on_black_hole(Sequence end);
  /// True if frames must leave one by one. `first` is the oldest frame. Frames from there on may be longer
  /// than frame_max(), or may be probes. A link may merge a burst into a super-frame, which says nothing
  /// about the length of a frame.
  bool singly(Sequence first) {
    if (!singly_before_) [[likely]]
      return false;
    if (!first.before(*singly_before_)) singly_before_.reset();
    return singly_before_.has_value();
  }

  /// Queues a PMTU probe if one is due. Call it once the peer has our opening.
  void send_pmtu_probe(SendQueue& queue);
  /// A lost frame leaves again. A PMTU probe loses its padding.
  void on_retransmit(Sequence s, FrameBody& body) {
    if (pmtu_probe_ == s && padded_) on_pmtu_probe_lost(body);
  }
  /// The PMTU probe, as long as it has its padding.
  std::optional<Sequence> pmtu_probe() const { return padded_ ? pmtu_probe_ : std::nullopt; }
  void on_acked(Sequence s, std::uint32_t sendings) {
    if (!pmtu_probe_) return;
    if (companion_ == s) companion_arrived_ = sendings == 1;
    if (pmtu_probe_ == s) on_pmtu_probe_acked();
  }

 private:
  /// Fits on every IPv6 path (1280 bytes, RFC 8200), and on nearly every other.
  static constexpr std::size_t kInitialFrameSize = 1232;
  /// Fits every path that carries the smallest usual IPv4 datagram (576 bytes, RFC 1122 3.3.2).
  static constexpr std::size_t kLeastFrameSize = 548;
  /// Needs no probe: the size of an IPv4 frame on an Ethernet with an MTU of 1500.
  static constexpr std::size_t kBasePlpmtu = 1472;
  static constexpr unsigned kProbesMax = 4;
  static constexpr std::uint32_t kBlackHoleSendings = 3;

  void on_pmtu_probe_lost(FrameBody& body);
  void on_pmtu_probe_acked();
  void report();
  /// The size that every path carries. It is large enough to cut the longest frames into at most kPartsMax
  /// parts.
  std::size_t least() const {
    return std::max(least_, sizeof(wire::FrameHeader) + sizeof(wire::PartBlock) + 1 +
                                handshake_.link_frame_max() / wire::kPartsMax);
  }
  std::size_t shorter(std::size_t size) const;
  std::size_t probe_size() const { return std::min(handshake_.link_frame_max(), probed_max_); }

  const Handshake& handshake_;
  const multipath::PathManager& paths_;
  Log& log_;
  const std::size_t initial_max_;
  const std::size_t least_;
  const std::size_t base_;
  std::size_t path_max_;
  /// No longer frame has arrived, or none since the last black hole.
  std::size_t proven_;
  std::size_t probed_max_ = wire::kFrameMax;  ///< longer frames are not probed
  std::size_t swallowed_ = 0;  ///< the shortest size that this search has found not to arrive; 0: none
  std::size_t reported_ = 0;   ///< the size that the last log line has named
  std::optional<Sequence> singly_before_;  ///< frames before it leave singly
  std::optional<Sequence> pmtu_probe_;
  std::optional<Sequence> companion_;  ///< the companion of the last probe
  bool padded_ = false;                ///< the outstanding probe still has its padding
  bool companion_arrived_ = false;
  unsigned lost_ = 0;  ///< probes of this size that were lost for their length
};

}  // namespace cluster::reliability
