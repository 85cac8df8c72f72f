#include "shm/local_deaths.h"

#include <algorithm>
#include <utility>

namespace cluster::shm {
namespace {

/// kUnwatchedCheck and kPartCheck are so short that this side detects the death of a process within 100 ms,
/// even without a handle of the process.
constexpr Duration kUnwatchedCheck = 60ms;
constexpr Duration kPartCheck = 20ms;  ///< if a call does not reach all peers; longer than kTicksPerCheck
constexpr Duration kExecCheck = 1s;
constexpr Duration kReportDelay = 500ms;

/// Returns true if a descriptor tells when the peer's process ends, or if the peer has no ring.
bool watched(LocalPeer& peer) {
  if (peer.inbox != nullptr) return peer.inbox->process_descriptor() >= 0;
  return peer.outbox == nullptr || peer.outbox->connected() || peer.outbox->process_descriptor() >= 0;
}

bool observable(LocalPeer& peer) {
  return peer.inbox != nullptr ? peer.inbox->process_observable() : peer.outbox->process_observable();
}

}  // namespace

void LocalDeaths::check_some(std::uint64_t ticks, Time now) {
  checked_at_tick_ = ticks;
  checked_at_ = now;
  const auto& peers = parts_.context.peers.all();
  if (now >= next_report_) {
    next_report_ = kNever;
    for (const std::unique_ptr<Peer>& each : peers) {
      LocalPeer* const peer = parts_.find(each.get());
      if (peer != nullptr && peer->ended_at != kNever) check(*peer);
    }
  }
  const std::size_t some = std::max(kPerCheck, (peers.size() + kChecksMax - 1) / kChecksMax);
  const std::size_t end = std::min(next_ + some, peers.size());
  for (; next_ < end; ++next_) {
    LocalPeer* const peer = parts_.find(peers[next_].get());
    if (peer == nullptr) continue;
    check(*peer);
    unwatched_found_ |= !watched(*peer);
  }
  unwatched_ |= unwatched_found_;
  if (next_ >= peers.size()) {
    unwatched_ = std::exchange(unwatched_found_, false);
    next_ = 0;
  }
  if (now - doorbells_checked_at_ < kUnwatchedCheck) return;
  doorbells_checked_at_ = now;
  check_doorbells(now);
}

/// Marks peers as failed if their doorbell no longer exists. A missing doorbell shows that the process has
/// ended or executes another program. (A child does not keep its parent's doorbell.)
void LocalDeaths::check_doorbells(Time now) {
  const bool all = now - all_doorbells_checked_at_ >= kExecCheck;
  if (all) all_doorbells_checked_at_ = now;
  for (const std::unique_ptr<Peer>& each : parts_.context.peers.all()) {
    LocalPeer* const found = parts_.find(each.get());
    if (found == nullptr) continue;
    LocalPeer& peer = *found;
    if (peer.outbox == nullptr || (!all && observable(peer)) || !peer.outbox->doorbell_gone()) continue;
    if (peer.inbox != nullptr) peer.inbox->ignore_writer();
    if ((peer.inbox == nullptr || local_.drain(peer)) && may_report(peer))
      parts_.context.peers.mark_failed(peer.common, Status::ended);
  }
}

Time LocalDeaths::next_check() const {
  if (!local_.any()) return kNever;
  const bool parts = next_ != 0 || (unwatched_ && parts_.context.peers.all().size() > kPerCheck);
  return std::min(next_report_, checked_at_ + (parts        ? kPartCheck
                                               : unwatched_ ? kUnwatchedCheck
                                                            : kExecCheck));
}

void LocalDeaths::check_closed() {
  for (LocalPeer* peer : local_.rings()) {
    if (peer->inbox->peer_closed() || (peer->outbox != nullptr && peer->outbox->peer_closed())) check(*peer);
  }
}

/// Closes the connection once the peer has attached the ring. Opens a handle of the peer's process, unless
/// there is an inbox, which already has one.
void LocalDeaths::settle_connection(LocalPeer& peer) {
  if (peer.outbox == nullptr || !peer.outbox->connected() || !peer.outbox->attached()) return;
  parts_.context.waiter.unwatch(peer.outbox->connection_descriptor());
  peer.outbox->close_connection(peer.inbox == nullptr);
  parts_.context.waiter.watch(peer.outbox->process_descriptor(), peer);
  unwatched_ |= !watched(peer);
}

void LocalDeaths::check_suspects() {
  for (const std::unique_ptr<Peer>& each : parts_.context.peers.all()) {
    LocalPeer* const peer = parts_.find(each.get());
    if (peer != nullptr && std::exchange(peer->suspect, false)) check(*peer);
  }
}

void LocalDeaths::check(LocalPeer& peer) {
  settle_connection(peer);
  const bool dead = (peer.inbox != nullptr && peer.inbox->peer_gone()) ||
                    (peer.outbox != nullptr && peer.outbox->peer_gone()) ||
                    (peer.inbox == nullptr && peer.outbox != nullptr && peer.outbox->process_ended());
  if (!dead) return;
  if (peer.inbox != nullptr) peer.inbox->ignore_writer();
  const bool refused = peer.outbox != nullptr && peer.outbox->refused();
  if ((peer.inbox == nullptr || local_.drain(peer)) && may_report(peer))
    parts_.context.peers.mark_failed(peer.common, refused ? Status::exhausted : Status::ended);
}

/// Returns true if the peer has closed, if it has never attached a ring, or if this side noticed the peer's
/// end at least kReportDelay ago. During this delay the descriptor of the peer's process is not watched,
/// because the descriptor stays readable.
bool LocalDeaths::may_report(LocalPeer& peer) {
  if (peer.inbox == nullptr && peer.outbox->connected()) return true;
  if ((peer.inbox != nullptr && peer.inbox->peer_closed()) ||
      (peer.outbox != nullptr && peer.outbox->peer_closed()))
    return true;
  const Time now = parts_.context.environment.clock.now();
  if (peer.ended_at == kNever) {
    peer.ended_at = now;
    if (peer.inbox != nullptr) parts_.context.waiter.unwatch(peer.inbox->process_descriptor());
    if (peer.outbox != nullptr) {
      parts_.context.waiter.unwatch(peer.outbox->process_descriptor());
      peer.outbox->block();
    }
  }
  const Time at = peer.ended_at + kReportDelay;
  if (now < at) next_report_ = std::min(next_report_, at);
  return now >= at;
}

}  // namespace cluster::shm
