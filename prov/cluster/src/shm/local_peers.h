// Peers of this node. Their rings are read directly.
//
// Every turn reads the rings that brought something lately (the active ones, in front). Each turn that is not
// calm (EventLoop) also reads kQuietPerTurn of the others, one after another, so an idle peer costs next to
// nothing. A turn delivers at most kRingBurst segments of a ring.
//
// If the unexpected store has no space for a message, the message's first segment stays in its ring, and its
// sender waits. A peer that dies meanwhile is closed after its ring has been read to the end.
// shm/local_deaths.h notices deaths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "protocol/messenger.h"
#include "shm/fast_lane.h"
#include "transport/arrival.h"
#include "transport/transport_context.h"

namespace cluster::shm {

using transport::PeerTable;
using transport::PollScope;

class LocalPeers {
 public:
  explicit LocalPeers(const ShmParts& parts)
      : parts_(parts),
        messenger_(parts.context.messenger),
        arrivals_(parts.context.messenger, parts.context.peers, parts.context.admission),
        lane_(parts.context.messenger, parts.context.settings.fast_lane) {}

  FastLane& lane() { return lane_; }

  void add_outbox(LocalPeer& peer, std::unique_ptr<Outbox> outbox);
  /// Throws if there is no memory; the caller then keeps the inbox.
  void add_inbox(LocalPeer& peer, std::unique_ptr<Inbox>&& inbox);
  void remove(LocalPeer& peer);
  /// The peers with an inbox.
  std::span<LocalPeer* const> rings() const { return rings_; }
  /// True if a peer has an inbox or an outbox.
  bool any() const { return outboxes_ != 0 || !rings_.empty(); }

  /// Delivers what has come. Returns true if something has come. `turn` counts the turns of the engine.
  bool receive(PollScope scope, std::uint32_t turn) { return !rings_.empty() && receive_rings(scope, turn); }
  /// True if there are so few rings that each turn reads all of them.
  bool reads_all() const { return rings_.size() <= kAlwaysRead; }
  enum class Arrivals : std::uint8_t { none, short_ones, other };
  /// Delivers messages that may take the fast lane, and writes that need no answer, from the active rings.
  /// Returns `other` if something else has come, perhaps behind these.
  template <typename Read>
  Arrivals receive_short(Read& read);
  /// Delivers all that the peer has left in its ring. Returns false if a segment waits for space in the
  /// unexpected store.
  bool drain(LocalPeer& peer);
  /// True if segments wait for space in the unexpected store.
  bool holding() const { return held_; }
  void receive_held(std::uint32_t turn);
  /// Asks all peers to ring when there is something to do here. Returns true if a peer had not been asked
  /// yet: the caller must then execute a process fence and another turn before it sleeps.
  bool request_doorbells();
  /// Rings the doorbells of peers that this side waits for and that leave segments in their rings, once each.
  /// A peer whose application has stopped polling may not have asked for the doorbell.
  void ring_unheard();

 private:
  /// With more rings than this, each turn reads only kQuietPerTurn of the quiet ones.
  static constexpr std::size_t kAlwaysRead = 16;
  static constexpr std::size_t kRingBurst = 64;

  bool receive_rings(PollScope scope, std::uint32_t turn);
  bool receive_quiet(PollScope scope, std::uint32_t turn);
  bool receive_ring(LocalPeer& peer);
  bool deliver(LocalPeer& peer, std::size_t limit);
  [[gnu::noinline]] bool deliver_write(LocalPeer& peer);
  void review();

  const ShmParts& parts_;
  protocol::Messenger& messenger_;
  transport::Arrivals arrivals_;
  FastLane lane_;
  std::size_t outboxes_ = 0;
  std::vector<LocalPeer*> rings_;  ///< peers with an inbox, the active ones in front
  std::size_t active_ = 0;         ///< how many rings are active; all before the first review
  std::size_t next_quiet_ = 0;     ///< the quiet ring that was read last
  bool held_ = false;
};

template <typename Read>
LocalPeers::Arrivals LocalPeers::receive_short(Read& read) {
  Arrivals arrivals = Arrivals::none;
  const auto quiet = rings_.begin() + static_cast<std::ptrdiff_t>(active_);
  for (auto at = rings_.begin(); at != quiet; ++at) {
    LocalPeer* const peer = *at;
    RingInbox* const ring = peer->ring;
    if (ring == nullptr) [[unlikely]] {
      if (peer->inbox->unchanged()) continue;
      return Arrivals::other;
    }
    if (!ring->has_next()) {
      if (ring->unchanged() || ring->found_empty()) continue;
      return Arrivals::other;
    }
    if (!ring->begin_batch()) [[unlikely]]
      return Arrivals::other;
    const OnExit end([ring] { ring->end_batch(); });
    std::size_t count = 0;
    bool more = true, left = false;
    while (more && count < kRingBurst) {
      const FastLane::Outcome outcome = lane_.receive(*peer, read);
      left = outcome == FastLane::Outcome::left;
      if (left || (outcome == FastLane::Outcome::refused && !deliver_write(*peer))) break;
      more = ring->has_next();
      ++count;
    }
    if (more && count < kRingBurst && !left) return Arrivals::other;
    if (left && count == 0) continue;
    peer->active = true;
    arrivals = Arrivals::short_ones;
  }
  return arrivals;
}

}  // namespace cluster::shm
