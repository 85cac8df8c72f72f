// How long frames to the peer may be (docs/protocol.md 4.7). Both links say what they take, but a network between them may take less and
// drop longer frames without notice. Before the flow sends frames of more than kBasePlpmtu bytes, a PMTU probe and its companion find out
// whether they arrive (RFC 8899). The base itself is not probed, because that would cost each session a long frame. If a shorter frame was
// sent again and again without effect, it has met a black hole: frames from then on are at most kInitialFrameSize long, after that at most
// least(), which every path carries. Then the search begins again: until the first probe arrives, an outage and a peer that computes look
// the same. Frames that are queued or outstanding keep their sequences, so those that have become too long leave in parts (PartEncoder).
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

  /// Largest frame to send, header included: both links and the path carry it.
  std::size_t frame_max() const {
    return std::min(handshake_.link_frame_max(), handshake_.knows_peer() ? path_max_ : initial_max_);
  }
  std::size_t segment_capacity() const {
    return frame_max() - sizeof(wire::FrameHeader) - handshake_.opening_size();
  }
  /// True if there is nothing (more) to find out (RFC 8899 5.2).
  bool search_complete() const { return probe_size() <= proven_; }

  /// True if a frame of `size` bytes, or one that leaves in parts so long, that was sent so often has probably met a black hole.
  bool suspects(std::size_t size, std::uint32_t sendings) const {
    return sendings >= (size > initial_max_ ? 1 : 2) * kBlackHoleSendings && size > least() &&
           handshake_.peer_takes_parts();
  }
  /// Frames from now on are shorter; those before `end` have their length.
  void on_black_hole(Sequence end);
  /// True if frames from `first` on, the oldest there is, may be longer than frame_max(), or are probes: each leaves by itself, since
  /// with others a link may hand it on as a super-frame, which says nothing about its length.
  bool singly(Sequence first) {
    if (!singly_before_) [[likely]]
      return false;
    if (!first.before(*singly_before_)) singly_before_.reset();
    return singly_before_.has_value();
  }

  /// Once the peer has our opening: queues a PMTU probe if one is due.
  void send_pmtu_probe(SendQueue& queue);
  /// The frame is lost and goes again: a PMTU probe without its padding.
  void on_retransmit(Sequence s, FrameBody& body) {
    if (pmtu_probe_ == s && padded_) on_pmtu_probe_lost(body);
  }
  /// The PMTU probe, while it has its padding.
  std::optional<Sequence> pmtu_probe() const { return padded_ ? pmtu_probe_ : std::nullopt; }
  void on_acked(Sequence s, std::uint32_t sendings) {
    if (!pmtu_probe_) return;
    if (companion_ == s) companion_arrived_ = sendings == 1;
    if (pmtu_probe_ == s) on_pmtu_probe_acked();
  }

 private:
  /// Fits on every IPv6 path (1280 bytes, RFC 8200), and on nearly every other.
  static constexpr std::size_t kInitialFrameSize = 1232;
  /// Fits where IPv4 has the least that it is used with (576 bytes, RFC 1122 3.3.2).
  static constexpr std::size_t kLeastFrameSize = 548;
  /// Needs no probe: an IPv4 frame on an Ethernet of 1500.
  static constexpr std::size_t kBasePlpmtu = 1472;
  static constexpr unsigned kProbesMax = 4;
  static constexpr std::uint32_t kBlackHoleSendings = 3;

  void on_pmtu_probe_lost(FrameBody& body);
  void on_pmtu_probe_acked();
  void report();
  /// What every path carries; the longest frames that the links take can be cut into so few parts that the peer puts them together.
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
  std::size_t proven_;                        ///< longer frames have not arrived yet, or not for long
  std::size_t probed_max_ = wire::kFrameMax;  ///< longer frames are not probed
  std::size_t swallowed_ = 0;  ///< the shortest frames that this search has found not to arrive; 0: none
  std::size_t reported_ = 0;   ///< the size that the last line has named as used
  std::optional<Sequence> singly_before_;  ///< frames before it leave singly
  std::optional<Sequence> pmtu_probe_;
  std::optional<Sequence> companion_;  ///< of the last probe
  bool padded_ = false;                ///< the probe outstanding still has its padding
  bool companion_arrived_ = false;
  unsigned lost_ = 0;  ///< probes of this size, for their length
};

}  // namespace cluster::reliability
