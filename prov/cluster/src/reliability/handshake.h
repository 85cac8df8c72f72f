// The two sessions of a flow, and what both sides have agreed on (docs/protocol.md 2.1 to 2.3).
//
// Every frame carries this side's opening until the peer shows that it has the opening. The peer shows it by
// a frame that is addressed to this session, and that acknowledges or carries data. Both sides may begin at
// once; neither waits for the other. Any host can write a frame that names no session. So this side learns
// the peer from a frame that names our session and repeats our token. Session and token went to the peer's
// address alone. The session alone is not enough: a host that tries all 32 bits in a peer's name would
// succeed after some hours.
//
// Invariant: the peer's opening is taken once and never changes. The exception is forget_peer(): the peer's
// session has ended before the peer showed that it has our opening.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/sequence.h"
#include "reliability/ack_delay.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::reliability {

struct PeerSession {
  std::uint64_t epoch = 0;
  std::uint32_t session = 0;
  friend bool operator==(const PeerSession&, const PeerSession&) = default;
};

/// Returns the first sequence of a flow, which an off-path host cannot guess. It is the session number in
/// which the sender receives. That number is random, and independent of the session in which the frames
/// travel.
inline Sequence first_sequence(std::uint32_t sender_session) { return {sender_session}; }

/// How an opening relates to what this side knows about its sender.
enum class OpeningClass : std::uint8_t {
  fresh,  ///< no session is open: the sender asks for one
  same,   ///< of the open session
  newer,  ///< claims to be from a new incarnation
  stale,  ///< older, or another session of the same epoch: refused
};

OpeningClass classify_opening(const std::optional<PeerSession>& known, const wire::Opening& opening);

class Handshake {
 public:
  /// Frames in flight while the peer may not have our opening.
  static constexpr std::size_t kInitialFramesMax = 8;
  /// Frames in flight while the peer's session is unknown: the peer does not take the data of such frames.
  static constexpr std::size_t kCallsMax = 1;

  /// `further`: addresses of this side besides its name. `sibling`: see wire::feature::kSibling; empty: none.
  explicit Handshake(const wire::Opening& ours, std::vector<SocketAddress> further = {},
                     const SocketAddress& sibling = {})
      : ours_(ours), further_(std::move(further)), sibling_(sibling) {
    if (further_.size() >= wire::kRailsMax) further_.resize(wire::kRailsMax - 1);
    ours_.rails = static_cast<std::uint8_t>(further_.size());
    if (!sibling_.empty()) ours_.features |= wire::feature::kSibling;
  }

  const wire::Opening& opening() const { return ours_; }
  std::uint32_t session() const { return ours_.session; }
  std::span<const SocketAddress> further_addresses() const { return further_; }
  const SocketAddress& sibling() const { return sibling_; }
  /// True if the sender of the frame has received our opening.
  bool echoed(const wire::FrameView& view) const {
    return view.has_opening && view.opening.echo == ours_.token;
  }
  /// Learns the peer from a frame. Returns false if the frame is not of this session, or not from an address
  /// of the peer.
  bool accept(const wire::FrameView& view, const SocketAddress& from);
  /// The frame counts as from the peer. A bare opening only shows that the peer has our opening, not that it
  /// keeps a session for us.
  void confirm(const wire::FrameView& view);
  /// Returns a handshake for a caller that has proven nothing yet.
  Handshake towards(const wire::Opening& caller) const;
  /// The peer's session has ended before the peer showed that it has our opening. The opening of its next
  /// session counts as the first.
  void forget_peer();
  /// True once the peer has addressed our session and named its own.
  bool knows_peer() const { return peer_.has_value(); }
  /// True once the peer is known to have our opening. From then on frames leave without it.
  bool peer_has_opening() const { return peer_has_opening_; }
  std::uint32_t peer_session() const { return peer_ ? peer_->session : 0; }
  std::uint64_t peer_epoch() const { return peer_ ? peer_->epoch : 0; }
  PeerSession peer() const { return {peer_epoch(), peer_session()}; }
  bool ethertype_negotiated() const {
    return peer_ && (ours_.features & peer_->features & wire::feature::kEthertypePath) != 0;
  }
  bool peer_takes_parts() const { return peer_ && (peer_->features & wire::feature::kFrameParts) != 0; }
  /// True if this side can ask the peer's kernel whether the peer's process exists.
  bool kernel_answers() const { return peer_ && (peer_->features & wire::feature::kKernelAnswers) != 0; }
  /// The longest that the peer delays an acknowledgement, by what its opening says.
  Duration peer_ack_delay() const {
    if (!peer_ || (peer_->features & wire::feature::kAcksLate) == 0) return kAckDelay;
    return peer_addresses_.size() > 1 ? kAckDelayOfRails : kAckDelayLate;
  }
  /// The peer's name and further addresses; empty until its opening was seen.
  std::span<const SocketAddress> peer_addresses() const { return peer_addresses_; }

  /// Frames that may be in flight or wait at the peer behind a gap.
  std::size_t window() const {
    const std::size_t both = std::min(ours_.window, peer_ ? peer_->window : ours_.window);
    if (peer_has_opening_) return both;
    return peer_ ? std::min(both, kInitialFramesMax) : kCallsMax;
  }
  /// The largest frame that both links carry, header included. The path may carry less (frame_size.h).
  std::size_t link_frame_max() const {
    return std::min(ours_.frame_max, peer_ ? peer_->frame_max : ours_.frame_max);
  }
  std::size_t opening_size() const {
    const std::size_t listed = further_.size() + (sibling_.empty() ? 0 : 1);
    return peer_has_opening_ ? 0 : sizeof(wire::OpeningBlock) + listed * sizeof(wire::RailBlock);
  }

 private:
  /// Enough: a late frame can revive an older session only if the peer restarts this often with its clock set
  /// back.
  static constexpr std::size_t kForgottenMax = 16;

  bool from_peer(const SocketAddress& from) const {
    return peer_addresses_.front() == from ||
           std::ranges::find(peer_addresses_, from) != peer_addresses_.end();
  }

  wire::Opening ours_;
  std::vector<SocketAddress> further_;
  SocketAddress sibling_;
  std::optional<wire::Opening> peer_;
  std::vector<SocketAddress> peer_addresses_;
  std::vector<PeerSession> forgotten_;  ///< late frames must not revive these
  bool peer_has_opening_ = false;
};

}  // namespace cluster::reliability
