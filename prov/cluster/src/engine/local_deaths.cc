#include "engine/local_deaths.h"

namespace cluster::engine {
namespace {

/// A death on this node is known within 100 ms.
constexpr Duration kUnwatchedCheck = 60ms;
constexpr Duration kExecCheck = 1s;

}  // namespace

void LocalDeaths::check_all(std::uint64_t ticks, Time now) {
  checked_at_tick_ = ticks;
  checked_at_ = now;
  for (const std::unique_ptr<Peer>& peer : peers_.all()) check(*peer);
  unwatched_ = false;
  for (const Peer* peer : local_.rings()) unwatched_ |= peer->inbox->process_descriptor() < 0;
  if (now - doorbells_checked_at_ < kExecCheck) return;
  doorbells_checked_at_ = now;
  check_doorbells();
}

void LocalDeaths::check_doorbells() {
  for (Peer* peer : local_.rings()) {
    if (peer->outbox == nullptr || !peer->outbox->doorbell_gone()) continue;
    if (local_.drain(*peer)) peers_.mark_failed(*peer, Status::ended);
  }
}

Time LocalDeaths::next_check() const {
  if (local_.rings().empty()) return kNever;
  return checked_at_ + (unwatched_ ? kUnwatchedCheck : kExecCheck);
}

void LocalDeaths::check_closed() {
  for (Peer* peer : local_.rings()) {
    if (peer->inbox->peer_closed() || (peer->outbox != nullptr && peer->outbox->peer_closed())) check(*peer);
  }
}

/// Where there is an inbox it knows the peer's process.
void LocalDeaths::settle_connection(Peer& peer) {
  if (peer.outbox == nullptr || !peer.outbox->connection().open() || !peer.outbox->attached()) return;
  waiter_.unwatch(peer.outbox->connection().descriptor());
  peer.outbox->connection().close(peer.inbox == nullptr);
  waiter_.watch(peer.outbox->connection().process_descriptor(), peer);
}

void LocalDeaths::check(Peer& peer) {
  settle_connection(peer);
  const bool dead = (peer.inbox != nullptr && peer.inbox->peer_gone()) ||
                    (peer.outbox != nullptr && peer.outbox->peer_gone()) ||
                    (peer.inbox == nullptr && peer.outbox != nullptr && peer.outbox->connection().process_ended());
  if (!dead) return;
  if (peer.inbox != nullptr) peer.inbox->ignore_writer();
  const bool refused = peer.inbox == nullptr && peer.outbox->connection().refused();
  if (peer.inbox == nullptr || local_.drain(peer)) peers_.mark_failed(peer, refused ? Status::exhausted : Status::ended);
}

}  // namespace cluster::engine
