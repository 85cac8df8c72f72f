#include "shm/shm_transport.h"

#include <optional>
#include <utility>

#include "os/process_fence.h"
#include "transport/peer_stats.h"

namespace cluster::shm {

using transport::OpenResult;
using transport::Turn;

namespace {

/// A tick is a nanosecond or a fraction of a nanosecond (Clock::ticks), so this interval is 0.3 to 1 ms.
constexpr std::uint64_t kTicksPerCheck = 1 << 20;
constexpr std::uint32_t kTurnsPerCheck = 1 << 12;

/// How long to wait for the hello of a process that has connected. The process sends its hello at once,
/// unless it is stopped at that moment.
constexpr Duration kHelloDelay = 1ms;

}  // namespace

ShmTransport::ShmTransport(const transport::TransportContext& context, LocalListener& listener,
                           RegionConnector* regions)
    : parts_{context, listener, *this, *this},
      regions_(regions),
      posted_(context.messenger.rma(), context.environment.counters),
      local_(parts_),
      deaths_(parts_, local_),
      opener_(parts_, local_) {
  context.waiter.watch(listener.descriptor(), connections_);
  context.waiter.watch(listener.doorbell(), doorbell_);
}

ShmTransport::~ShmTransport() {
  for (const std::unique_ptr<Peer>& peer : parts_.context.peers.all()) peer->parts[slot()].reset();
}

OpenResult ShmTransport::open(Peer& peer, std::string& reason) {
  std::string why_not;
  const OpenResult opening = opener_.open(peer, why_not);
  if (opening == OpenResult::unreached) transport::add_reason(reason, "no shared memory: " + why_not);
  if (opening != OpenResult::reached) return opening;
  reason = "the peer is on this node";
  parts_.context.environment.log.info("peer %s is reached over shared memory: the peer is on this node",
                                      peer.name().text().c_str());
  return opening;
}

bool ShmTransport::look_for(Peer& peer) {
  std::string reason;
  return opener_.try_open(peer, reason) == OpenResult::reached;
}

void ShmTransport::close(Peer& peer) {
  if (LocalPeer* const local = parts_.find(&peer)) local_.remove(*local);
}

void ShmTransport::say_goodbye(Peer& peer) {
  LocalPeer* const local = parts_.find(&peer);
  if (local == nullptr || local->outbox == nullptr) return;
  wire::Segment notice;
  notice.kind = wire::SegmentKind::close;
  local->outbox->post(notice, {}, carrier::PayloadMode::copy, 0);
}

bool ShmTransport::holds(const Peer& peer) const {
  const LocalPeer* const local = parts_.find(&peer);
  return local != nullptr && (local->outbox != nullptr || local->inbox != nullptr);
}

/// Returns true for a peer with an inbox, because the kernel has said that the peer's process runs as the
/// same user as this process.
bool ShmTransport::vouches_for(Peer& peer) {
  const LocalPeer* const local = parts_.find(&peer);
  return local != nullptr && local->inbox != nullptr;
}

void ShmTransport::report(const Peer& peer, transport::PeerStats& stats) const {
  const LocalPeer* const local = parts_.find(&peer);
  if (local == nullptr || !holds(peer)) return;
  stats.rings = {.single_copy = peer.channel.memory != nullptr,
                 .unread = local->outbox != nullptr && !local->outbox->drained()};
  stats.footprint += sizeof *local;
  if (local->outbox != nullptr) stats.footprint += local->outbox->footprint();
  if (local->inbox != nullptr) stats.footprint += local->inbox->footprint();
}

std::unique_ptr<carrier::MemoryAccess> ShmTransport::reach_memory(Peer& peer) {
  LocalPeer& local = parts_.of(peer);
  if (regions_ == nullptr || local.outbox == nullptr) return nullptr;
  std::unique_ptr<LocalMemory> memory = regions_->connect(peer.name());
  if (memory != nullptr) memory->use_ring(peer.channel, *local.outbox, posted_);
  return memory;
}

bool ShmTransport::receive(Turn& turn) {
  const bool received = local_.receive(turn.scope(), turn.number());
  turn.note(received);
  turn.cheaper_in_use |= !local_.rings().empty();
  // A turn that hurries takes no posted writes back, and does not check for connections and dead peers,
  // because all of these can wait.
  if (!posted_.idle()) posted_.settle(turn.hurries() ? std::nullopt : std::optional(turn.ticks()));
  if (!turn.hurries()) check(turn);
  return received;
}

void ShmTransport::check(Turn& turn) {
  const bool rests = turn.ticks() - checked_at_ <= kTicksPerCheck && turn.number() % kTurnsPerCheck != 0;
  if (rests && !suspects_) return;
  checked_at_ = turn.ticks();
  opener_.accept();
  opener_.advance_greetings();
  if (std::exchange(suspects_, false)) deaths_.check_suspects();
  if (parts_.context.messenger.under_way()) local_.ring_unheard();
  if (deaths_.due(turn.ticks(), turn.number()))
    deaths_.check_some(turn.ticks(), parts_.context.environment.clock.now());
}

/// Before the thread sleeps, takes back the posted writes that peers have not taken, and executes them. Also
/// asks the peers to ring the doorbell. Returns false if a peer is taking writes now. In this case the thread
/// must not sleep.
bool ShmTransport::prepare_sleep() {
  const bool recalled = posted_.recall();
  if (local_.request_doorbells()) os::fence_processes();
  return recalled;
}

Time ShmTransport::deadline() const {
  const Time next = deaths_.next_check();
  return opener_.owes_answers() ? std::min(next, parts_.context.environment.clock.now() + kHelloDelay) : next;
}

bool ShmTransport::wants_turn() const {
  const bool waits = !parts_.context.messenger.idle_but_for_accesses() && !local_.rings().empty();
  return waits || !posted_.idle();
}

void ShmTransport::on_doorbell() {
  parts_.listener.clear_doorbell();
  deaths_.check_closed();
}

/// If there is no inbox, perhaps the peer's ring is not adopted yet. Even if the peer has closed, that ring
/// may contain the peer's last messages. So the next turn first adopts rings, and then checks whether the
/// peer is dead.
void ShmTransport::peer_ready(LocalPeer& peer) {
  opener_.advance_greetings();
  if (peer.inbox != nullptr) return deaths_.check(peer);
  peer.suspect = suspects_ = true;
}

}  // namespace cluster::shm
