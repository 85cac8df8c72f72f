// Whose session this is, and what has to be said until both sides know it.
//
// There is no exchange of its own: every frame carries our opening until one arrives that is
// addressed to our session, which proves that the peer has it. Both sides may begin at once; neither
// waits for the other. Which life of a peer a frame belongs to is decided by epochs: a name's later
// sessions have larger ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "multipath/path_mtu.h"
#include "wire/admit.h"
#include "wire/frame.h"
#include "wire/opening.h"

namespace cluster::reliability {

/// What is known of a peer: its session and which of its lives that belongs to.
struct PeerSession {
  std::uint64_t epoch = 0;
  std::uint32_t session = 0;
};

/// How an opening relates to what is known of its sender.
enum class OpeningClass : std::uint8_t {
  fresh,  ///< nothing was known: it opens a session
  same,   ///< the session that is open already
  newer,  ///< a new life: what is known of the old one is void
  stale,  ///< from a life that is over: refuse it, naming the newer epoch
};

OpeningClass classify_opening(const std::optional<PeerSession>& known, const wire::Opening& opening);

class Handshake {
 public:
  /// In flight while the peer is not known to have our opening: so many from the first on.
  static constexpr std::size_t kFramesBeforeAnswer = 8;

  /// `further` are the addresses of this side besides its name; at most wire::kRailsMax in all.
  explicit Handshake(const wire::Opening& ours, std::vector<SocketAddress> further = {})
      : ours_(ours), further_(std::move(further)) {
    if (further_.size() >= wire::kRailsMax) further_.resize(wire::kRailsMax - 1);
    ours_.rails = static_cast<std::uint8_t>(further_.size());
  }

  const wire::Opening& ours() const { return ours_; }
  std::uint32_t session() const { return ours_.session; }
  std::span<const SocketAddress> further() const { return further_; }
  /// Checks that the frame belongs to this session and learns from it. False: not of this session.
  bool accept(const wire::FrameView& view);
  /// True once the peer's opening was seen.
  bool knows_peer() const { return peer_.has_value(); }
  /// True once the peer has addressed our session: it hears what is sent to its address.
  bool address_validated() const { return address_validated_; }
  /// True once the peer is known to have our opening: it need not be said any more.
  bool peer_has_opening() const { return peer_has_opening_; }
  std::uint32_t peer_session() const { return peer_ ? peer_->session : 0; }
  std::uint64_t peer_epoch() const { return peer_ ? peer_->epoch : 0; }
  PeerSession peer() const { return {peer_epoch(), peer_session()}; }
  bool ethertype_negotiated() const {
    return peer_ && (ours_.features & peer_->features & wire::feature::kEthertypePath) != 0;
  }
  /// Its name, and under which others it can be reached; empty until its opening was seen.
  std::span<const SocketAddress> peer_addresses() const { return peer_addresses_; }

  /// Frames that may be on their way or waiting at the peer behind a gap.
  std::size_t window() const {
    const std::size_t both = std::min(ours_.window, peer_ ? peer_->window : ours_.window);
    return peer_has_opening_ ? both : std::min(both, kFramesBeforeAnswer);
  }
  /// Largest frame to send, header included: both sides and the path take it.
  std::size_t frame_max() const { return std::min(longest(), peer_ ? proven_ : kFrameBeforeAnswer); }
  /// What both links would take; whether the path does is proven by whoever calls prove().
  std::size_t longest() const {
    return std::min(ours_.frame_max, peer_ ? peer_->frame_max : ours_.frame_max);
  }
  void prove(std::size_t frame) { proven_ = frame; }
  /// What is left of it for segments.
  std::size_t room() const { return frame_max() - sizeof(wire::FrameHeader) - opening_size(); }
  std::size_t opening_size() const {
    return peer_has_opening_ ? 0 : sizeof(wire::OpeningBlock) + further_.size() * sizeof(wire::RailBlock);
  }

 private:
  /// Fits where IPv6 works at all (links of 1280 bytes), so a peer's smaller MTU loses nothing.
  static constexpr std::size_t kFrameBeforeAnswer = 1232;

  wire::Opening ours_;
  std::vector<SocketAddress> further_;
  std::optional<wire::Opening> peer_;
  std::vector<SocketAddress> peer_addresses_;
  bool address_validated_ = false;
  bool peer_has_opening_ = false;
  std::size_t proven_ = multipath::PathMtu::kBasePlpmtu;
};

}  // namespace cluster::reliability
