// The peers of this node. The engine reads their rings through this class.
//
// A ring is active if a segment has arrived in it lately, and quiet otherwise. If there are at most
// kAlwaysRead rings, all of them count as active. Every turn reads all active rings. A turn that is not calm
// (EventLoop) also reads quiet rings: all of them with PollScope::all, otherwise kQuietPerTurn of them, in
// rotation. So an idle peer costs almost nothing. A turn delivers at most kRingBurst segments of each ring.
//
// If the unexpected store has no space for a message, the first segment of the message stays in its ring, and
// the sender must wait. If the sender dies meanwhile (shm/local_deaths.h), this side first reads the ring to
// the end, and only then closes the peer.
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
  /// If there is no memory, throws and leaves the inbox with the caller.
  void add_inbox(LocalPeer& peer, std::unique_ptr<Inbox>&& inbox);
  void remove(LocalPeer& peer);
  /// Returns the peers that have an inbox.
  std::span<LocalPeer* const> rings() const { return rings_; }
  /// Returns true if any peer has an inbox or an outbox.
  bool any() const { return outboxes_ != 0 || !rings_.empty(); }

  /// Delivers the segments that have arrived. Returns true if there were any. `turn`: number of the engine's
  /// turn.
  bool receive(PollScope scope, std::uint32_t turn) { return !rings_.empty() && receive_rings(scope, turn); }
  /// Returns true if each turn reads all rings, because there are only few.
  bool reads_all() const { return rings_.size() <= kAlwaysRead; }
  enum class Arrivals : std::uint8_t { none, short_ones, other };
  /// Delivers from the active rings the messages that may take the fast lane, and the writes that get no
  /// answer. Returns `other` if other segments have arrived, perhaps behind these.
  template <typename Read>
  Arrivals receive_short(Read& read);
  /// Delivers all segments that remain in the peer's ring. Returns false if a segment waits for space in the
  /// unexpected store.
  bool drain(LocalPeer& peer);
  /// Returns true if segments wait for space in the unexpected store.
  bool holding() const { return held_; }
  /// Called when the unexpected store may have space. Delivers the segments that wait for it.
  void receive_held(std::uint32_t turn);
  /// Asks all peers to ring this endpoint's doorbell when they post a segment. If operations wait for space
  /// in the ring to a peer, or if puts to the peer are pending, also asks this peer to ring the doorbell when
  /// it frees space. Returns true if any of the requests is new. If so, the caller must execute a process
  /// fence and another turn before it sleeps.
  bool request_doorbells();
  /// Rings the doorbell of each peer that leaves segments untaken while an operation of this side waits for
  /// the peer. Rings even without a request, because a peer whose application has stopped polling may have
  /// made none. Rings a doorbell only once until the peer takes segments again.
  void ring_unheard();

 private:
  /// If there are more rings than this, each turn reads only kQuietPerTurn of the quiet ones.
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
  std::vector<LocalPeer*> rings_;  ///< the peers that have an inbox; those with active rings are in front
  /// How many rings are active. After a ring was added or removed, all rings count as active until the next
  /// review().
  std::size_t active_ = 0;
  std::size_t next_quiet_ = 0;  ///< index of the quiet ring that was read last
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
