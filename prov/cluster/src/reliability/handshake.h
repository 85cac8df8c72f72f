// The two sessions of a flow, and what both sides have agreed on (docs/protocol.md 2.1 to 2.3).
//
// Every frame of the flow carries our opening until the peer has shown that it received the opening. The peer
// shows this with a fin, or with a frame that carries data or an acknowledgement. The frame must be addressed
// to our session. Both sides may begin at the same time: neither waits for the other's opening before it
// sends its own.
//
// Any host can spoof the peer's address in a frame that names no session. So this side accepts the peer's
// opening only from a frame that names our session and repeats our token. We have sent session and token only
// to the peer's address. The session number alone would not be enough: a forger that tries all 32-bit numbers
// would succeed after some hours.
//
// Invariant: what this side has accepted from the peer's opening does not change. There are two exceptions.
// move_peer() replaces an address of the peer. forget_peer() is called if the peer's session has ended before
// the peer showed that it received our opening.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/sequence.h"
#include "link/link.h"
#include "reliability/ack_delay.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::reliability {

/// Names one session of a peer: the epoch and the session number in the peer's opening.
struct PeerSession {
  std::uint64_t epoch = 0;
  std::uint32_t session = 0;
  friend bool operator==(const PeerSession&, const PeerSession&) = default;
};

/// Returns the sequence of a sender's first frame, which an off-path host cannot guess: it is the sender's
/// own session number. That number is random. It is also independent of the number in the sender's frames,
/// which is the session number of the receiver.
inline Sequence first_sequence(std::uint32_t sender_session) { return {sender_session}; }

/// Says how an opening relates to the session that this side already has with its sender.
enum class OpeningClass : std::uint8_t {
  fresh,  ///< no session is open, so the sender asks for one
  same,   ///< the opening of the open session
  newer,  ///< the opening has a later epoch: the sender claims to have a new session
  stale,  ///< from an earlier epoch, or for another session of the same epoch
};

OpeningClass classify_opening(const std::optional<PeerSession>& known, const wire::Opening& opening);

class Handshake {
 public:
  /// The most frames in flight until the peer has shown that it received our opening.
  static constexpr std::size_t kInitialFramesMax = 8;
  /// The most frames in flight while the peer's session is unknown. These frames are calls, which carry no
  /// data (frame_sender.h).
  static constexpr std::size_t kCallsMax = 1;

  /// `further`: addresses of this side that differ from its name. `sibling`: another endpoint of this process
  /// (wire::feature::kSibling), or empty. `queue_pairs`: the queue pairs of this side.
  explicit Handshake(const wire::Opening& ours, std::vector<SocketAddress> further = {},
                     const SocketAddress& sibling = {}, std::vector<wire::VerbsAddress> queue_pairs = {})
      : ours_(ours), further_(std::move(further)), sibling_(sibling), queue_pairs_(std::move(queue_pairs)) {
    if (further_.size() >= wire::kRailsMax) further_.resize(wire::kRailsMax - 1);
    if (queue_pairs_.size() > wire::kVerbsMax) queue_pairs_.resize(wire::kVerbsMax);
    ours_.rails = static_cast<std::uint8_t>(further_.size());
    ours_.verbs = static_cast<std::uint8_t>(queue_pairs_.size());
    if (!queue_pairs_.empty()) ours_.features |= wire::feature::kVerbs;
    if (!sibling_.empty()) ours_.features |= wire::feature::kSibling;
  }

  const wire::Opening& opening() const { return ours_; }
  std::uint32_t session() const { return ours_.session; }
  std::span<const SocketAddress> further_addresses() const { return further_; }
  const SocketAddress& sibling() const { return sibling_; }
  std::span<const wire::VerbsAddress> queue_pairs() const { return queue_pairs_; }
  /// Returns true if the frame repeats our token, so its sender has received our opening.
  bool echoed(const wire::FrameView& view) const {
    return view.has_opening && view.opening.echo == ours_.token;
  }
  /// Returns true if the frame belongs to this session and comes from an address of the peer. If the peer is
  /// not known yet, accepts its opening from the frame.
  bool accept(const wire::FrameView& view, const SocketAddress& from);
  /// Called for a frame that certainly comes from the peer. A frame with data, an acknowledgement or a fin
  /// shows that the peer has our opening, and that it keeps a session for us. A frame with only an opening
  /// does not show that the peer keeps a session.
  void confirm(const wire::FrameView& view);
  /// Returns a handshake for the answer to `caller`, an opening whose sender is not proven to be the peer.
  /// Therefore this handshake itself does not change.
  Handshake towards(const wire::Opening& caller) const;
  /// Forgets the peer's opening. Called if the peer's session has ended before the peer showed that it
  /// received our opening. From then on this side accepts the opening of the peer's next session.
  void forget_peer();
  /// Returns true once this side has accepted the peer's opening.
  bool knows_peer() const { return peer_.has_value(); }
  /// Returns true once the peer has shown that it received our opening. From then on frames leave without our
  /// opening.
  bool peer_has_opening() const { return peer_has_opening_; }
  std::uint32_t peer_session() const { return peer_ ? peer_->session : 0; }
  std::uint64_t peer_epoch() const { return peer_ ? peer_->epoch : 0; }
  PeerSession peer() const { return {peer_epoch(), peer_session()}; }
  /// Returns true if the opening comes from the incarnation of the peer that this side knows.
  bool is_of_same_incarnation(const wire::Opening& opening) const {
    return peer_ && opening.incarnation != 0 && opening.incarnation == peer_->incarnation;
  }
  bool ethertype_negotiated() const {
    return peer_ && (ours_.features & peer_->features & wire::feature::kEthertypePath) != 0;
  }
  /// Returns the size of the longest frame that the peer receives on the EtherType path.
  std::size_t ethertype_frame_max() const {
    const bool whole = peer_ && (peer_->features & wire::feature::kEthertypeWhole) != 0;
    return whole ? link::kEthertypeFrameMax : link::kEthertypeFrameOld;
  }
  /// Returns true if both sides can read long messages by RDMA devices.
  bool device_reads() const {
    return peer_ && (ours_.features & peer_->features & wire::feature::kDeviceReads) != 0;
  }
  bool peer_takes_parts() const { return peer_ && (peer_->features & wire::feature::kFrameParts) != 0; }
  /// Returns true if the peer's kernel answers the question whether the peer's process exists.
  bool kernel_answers() const { return peer_ && (peer_->features & wire::feature::kKernelAnswers) != 0; }
  /// Returns the longest time by which the peer may delay an acknowledgement, according to its opening.
  Duration peer_ack_delay() const {
    if (!peer_ || (peer_->features & wire::feature::kAcksLate) == 0) return kAckDelay;
    return peer_->rails != 0 ? kAckDelayOfRails : kAckDelayLate;
  }
  /// Returns the addresses of the peer's rails: first the peer's name, then its further addresses and its
  /// queue pairs. Returns nothing while the peer is unknown.
  std::span<const SocketAddress> peer_addresses() const { return peer_addresses_; }
  /// Returns the peer's queue pairs, whose addresses are among peer_addresses() as well.
  std::span<const wire::VerbsAddress> peer_queue_pairs() const { return peer_queue_pairs_; }

  /// Returns true if the peer has this address. Returns false while the peer is unknown.
  bool has_address(const SocketAddress& address) const {
    return std::ranges::find(peer_addresses_, address) != peer_addresses_.end();
  }

  /// Returns true if the peer has named a rail with this number.
  bool has_rail(std::uint8_t rail) const { return rail < peer_addresses_.size(); }
  /// Called after the peer has answered from `to`, the new address of its rail with this number. Returns the
  /// address that `to` replaces, or nothing if nothing changes.
  std::optional<SocketAddress> move_peer(std::uint8_t rail, const SocketAddress& to) {
    if (!has_rail(rail) || has_address(to)) return std::nullopt;
    return std::exchange(peer_addresses_[rail], to);
  }

  /// Called after this side has replaced the queue pair with this number in its opening.
  void replace_own_queue_pair(std::size_t number, const SocketAddress& now) {
    if (number < queue_pairs_.size()) queue_pairs_[number].address = now;
  }
  /// Called after the peer has replaced the queue pair with this number in its opening by another one at the
  /// same GID, which has the number `now`. Returns the address of the former queue pair. Returns nothing if
  /// the peer has no such queue pair, or if nothing changes.
  std::optional<SocketAddress> replace_peer_queue_pair(std::size_t number, std::uint32_t now);

  /// Returns how many frames may be in flight or wait at the peer behind a gap.
  std::size_t window() const {
    const std::size_t both = std::min(ours_.window, peer_ ? peer_->window : ours_.window);
    if (peer_has_opening_) return both;
    return peer_ ? std::min(both, kInitialFramesMax) : kCallsMax;
  }
  /// Returns the size of the longest frame that both links carry, header included. The path may carry only
  /// shorter frames (frame_size.h).
  std::size_t link_frame_max() const {
    return std::min(ours_.frame_max, peer_ ? peer_->frame_max : ours_.frame_max);
  }
  /// Returns how many bytes our opening needs in each frame now.
  std::size_t opening_size() const {
    const std::size_t listed = further_.size() + (sibling_.empty() ? 0 : 1);
    return peer_has_opening_ ? 0
                             : sizeof(wire::OpeningBlock) + listed * sizeof(wire::RailBlock) +
                                   queue_pairs_.size() * sizeof(wire::VerbsBlock);
  }

 private:
  /// How many forgotten sessions of the peer this side remembers. A late frame could revive an older one only
  /// after forget_peer() was called more often than this in one flow.
  static constexpr std::size_t kForgottenMax = 16;

  bool from_peer(const SocketAddress& from) const {
    return peer_addresses_.front() == from ||
           std::ranges::find(peer_addresses_, from) != peer_addresses_.end();
  }

  wire::Opening ours_;
  std::vector<SocketAddress> further_;
  SocketAddress sibling_;
  std::vector<wire::VerbsAddress> queue_pairs_;
  std::optional<wire::Opening> peer_;
  std::vector<SocketAddress> peer_addresses_;
  std::vector<wire::VerbsAddress> peer_queue_pairs_;
  std::vector<PeerSession> forgotten_;  ///< sessions that late frames must not revive
  bool peer_has_opening_ = false;
};

}  // namespace cluster::reliability
