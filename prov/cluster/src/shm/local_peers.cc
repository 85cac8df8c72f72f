#include "shm/local_peers.h"

#include <algorithm>
#include <utility>

#include "shm/layout.h"

namespace cluster::shm {
namespace {

constexpr std::size_t kQuietPerTurn = 8;
constexpr std::uint32_t kTurnsPerReview = 1 << 12;
/// The most segments that a dead peer can have left in its ring. The limit matters if the peer is alive after
/// all, because it might write without end.
constexpr std::size_t kRingFull = Geometry::kSlotsMax;

}  // namespace

void LocalPeers::add_outbox(LocalPeer& peer, std::unique_ptr<Outbox> outbox) {
  FastLane::close(peer.common);
  peer.outbox = std::move(outbox);
  ++outboxes_;
  parts_.context.waiter.watch(peer.outbox->connection_descriptor(), peer);
  parts_.context.reach.reached(peer.common, parts_.transport, *peer.outbox,
                               parts_.context.settings.shm_eager_max);
}

void LocalPeers::add_inbox(LocalPeer& peer, std::unique_ptr<Inbox>&& inbox) {
  // Allocates first. If there is no memory, the caller still has the inbox.
  rings_.reserve(rings_.size() + 1);
  parts_.context.waiter.reserve();
  rings_.push_back(&peer);
  peer.inbox = std::move(inbox);
  peer.channel.memory = peer.inbox->memory();
  peer.ring = lane_.enabled() ? peer.inbox->ring() : nullptr;
  active_ = rings_.size();
  parts_.context.waiter.watch(peer.inbox->process_descriptor(), peer);
  if (peer.outbox == nullptr) return;
  parts_.context.waiter.unwatch(peer.outbox->process_descriptor());
  peer.outbox->release_process();
}

void LocalPeers::remove(LocalPeer& peer) {
  FastLane::close(peer.common);
  if (peer.outbox != nullptr) {
    parts_.context.waiter.unwatch(peer.outbox->connection_descriptor());
    parts_.context.waiter.unwatch(peer.outbox->process_descriptor());
    --outboxes_;
  }
  peer.outbox.reset();
  if (peer.inbox != nullptr) {
    parts_.context.waiter.unwatch(peer.inbox->process_descriptor());
    std::erase(rings_, &peer);
    active_ = rings_.size();
    peer.ring = nullptr;
    peer.inbox.reset();
  }
  peer.held = false;
  peer.ended_at = kNever;
}

bool LocalPeers::receive_rings(PollScope scope, std::uint32_t turn) {
  bool received = false;
  for (std::size_t i = 0; i < active_; ++i) received |= receive_ring(*rings_[i]);
  if (!reads_all()) [[unlikely]]
    received |= receive_quiet(scope, turn);
  return received;
}

/// Delivers the next segment if it is a write that gets no answer. Otherwise returns false.
bool LocalPeers::deliver_write(LocalPeer& peer) {
  RingInbox& ring = *peer.ring;
  PeekedSegment arrival;
  if (!ring.peek_unanswered(arrival) || !arrival.segment.unanswered()) return false;
  messenger_.rma_target().on_write(peer.channel, arrival.segment, arrival.payload);
  if (!peer.channel.incoming_write.allowed) ring.refuse();
  ring.pop();
  return true;
}

/// Reads quiet rings. If there are at most kAlwaysRead rings, all of them count as active, and none are
/// quiet.
bool LocalPeers::receive_quiet(PollScope scope, std::uint32_t turn) {
  bool received = false;
  const std::size_t quiet = rings_.size() - active_;
  const std::size_t most = scope == PollScope::all ? quiet : std::min(quiet, kQuietPerTurn);
  for (std::size_t i = 0; i < most; ++i) {
    next_quiet_ = next_quiet_ + 1 < rings_.size() ? std::max(next_quiet_ + 1, active_) : active_;
    if (!receive_ring(*rings_[next_quiet_])) continue;
    received = true;
    std::swap(rings_[next_quiet_], rings_[active_++]);
  }
  if (turn % kTurnsPerReview == 0) review();
  return received;
}

bool LocalPeers::receive_ring(LocalPeer& peer) {
  if (peer.inbox->unchanged() || peer.common.failed) return false;
  const bool received = deliver(peer, kRingBurst);
  peer.active |= received;
  if (peer.inbox->broken()) parts_.context.peers.mark_failed(peer.common, Status::reset);
  return received;
}

/// Delivers up to `limit` segments. Returns true if there were any.
bool LocalPeers::deliver(LocalPeer& peer, std::size_t limit) {
  if (!peer.inbox->begin_batch()) [[unlikely]]
    return false;
  const OnExit end([&] { peer.inbox->end_batch(); });
  struct Source : PeekedSegment {
    explicit Source(LocalPeer& from) : peer(from), inbox(*from.inbox) {}

    bool next() { return inbox.peek(*this); }
    /// Pops the segment. Returns false after the last segment, so that the caller need not read the ring
    /// again before the application gets this segment.
    bool taken() {
      if (segment.unanswered() && !peer.channel.incoming_write.allowed) inbox.refuse();
      inbox.pop();
      return inbox.has_next();
    }
    bool hold() { return true; }

    LocalPeer& peer;
    Inbox& inbox;
  } source(peer);
  const std::size_t count = arrivals_.deliver(peer.common, source, peer.held, limit);
  held_ |= peer.held;
  return count != 0;
}

bool LocalPeers::drain(LocalPeer& peer) {
  deliver(peer, kRingFull);
  return !peer.held;
}

void LocalPeers::receive_held(std::uint32_t turn) {
  held_ = false;
  receive(PollScope::all, turn);
}

/// Moves the active rings to the front. These are the rings in which segments have arrived since the last
/// review.
void LocalPeers::review() {
  const auto quiet =
      std::partition(rings_.begin(), rings_.end(), [](const LocalPeer* peer) { return peer->active; });
  active_ = static_cast<std::size_t>(quiet - rings_.begin());
  for (LocalPeer* peer : rings_) peer->active = false;
}

bool LocalPeers::request_doorbells() {
  bool newly_requested = false;
  for (LocalPeer* peer : rings_) newly_requested |= peer->inbox->request_doorbell();
  if (messenger_.busy()) {
    for (const std::unique_ptr<Peer>& each : parts_.context.peers.all()) {
      const LocalPeer* const peer = parts_.find(each.get());
      if (peer == nullptr || peer->outbox == nullptr) continue;
      const bool writes = peer->channel.rma.puts_pending + peer->channel.rma.writes_announced != 0;
      if (peer->channel.busy() || writes) newly_requested |= peer->outbox->request_doorbell();
    }
  }
  return newly_requested;
}

void LocalPeers::ring_unheard() {
  for (LocalPeer* peer : rings_) {
    if (peer->outbox != nullptr && peer->channel.waits_for_peer()) peer->outbox->ring_doorbell_if_stalled();
  }
}

}  // namespace cluster::shm
