// Peers of this node: their rings are read directly, their death is an end-of-file.
#include <utility>

#include "engine/core.h"
#include "shm/layout.h"

namespace cluster::engine {
namespace {

/// Segments taken from one ring before the next has its turn.
constexpr std::size_t kRingBurst = 64;
/// What a peer can have left behind. One that is not dead at all might go on writing for ever.
constexpr std::size_t kRingFull = shm::Geometry::kSlotsMax;

}  // namespace

bool Core::receive_self() {
  SelfCarrier::Entry entry;
  std::size_t count = 0;
  Peer& peer = peers_.named(parts_.name);
  for (; count < kRingBurst && self_.waiting() && takes(peer, self_.front()); ++count) {
    self_.next(entry);
    messenger_.arrive(peer.channel, entry.segment, {entry.payload.get(), entry.segment.length});
  }
  return count != 0;
}

/// May the segment be taken out of where it waits?
bool Core::takes(Peer& peer, const wire::Segment& segment) {
  const bool waited = std::exchange(peer.held_back, !messenger_.ready(peer.channel, segment));
  if (!peer.held_back) [[likely]]
    return true;
  rings_held_ = true;
  if (!waited) count_held();
  return false;
}

bool Core::receive_local() {
  bool news = false;
  for (Peer* peer : locals_) {
    news |= drain(*peer, kRingBurst);
    if (peer->inbox->broken()) doom(*peer, Fault::reset);
  }
  return news;
}

/// True if there was something.
bool Core::drain(Peer& peer, std::size_t limit) {
  shm::Arrival arrival;
  std::size_t count = 0;
  for (; count < limit && peer.inbox->look(arrival) && takes(peer, arrival.segment); ++count) {
    messenger_.arrive(peer.channel, arrival.segment, arrival.payload);
    peer.inbox->take();
  }
  return count != 0;
}

void Core::accept_local() {
  parts_.host->accept(arrivals_);
  for (std::unique_ptr<shm::Inbox>& inbox : arrivals_) adopt(std::move(inbox));
  arrivals_.clear();
}

/// A ring towards us was opened. A second one from the same name is the peer's next life, if the present
/// one is over: while its socket is open, whoever else calls itself so lies.
void Core::adopt(std::unique_ptr<shm::Inbox> inbox) {
  Counters& counters = parts_.environment.counters;
  if (!room_for(parts_.environment.clock.now(), inbox->peer(), locals_.size())) {
    ++counters.shm_refused;
    return;
  }
  Peer& peer = peers_.named(inbox->peer());
  if (peer.inbox != nullptr) {
    if (!peer.inbox->peer_gone() || inbox->peer_epoch() <= peer.inbox->peer_epoch()) {
      ++counters.shm_refused;
      return;
    }
    drain(peer, kRingFull);
    if (peer.held_back) {
      ++counters.shm_refused;
      return;
    }
    lose(peer, Fault::reset);
  }
  peer.inbox = std::move(inbox);
  peer.channel.memory = peer.inbox->memory();
  locals_.push_back(&peer);
  watch(*peer.inbox, peer);
  if (peer.channel.carrier == nullptr) contact(peer);  // answers need a way back
}

void Core::check_local_deaths() {
  for (const std::unique_ptr<Peer>& peer : peers_.all()) check_local_death(*peer);
}

void Core::check_local_death(Peer& peer) {
  const bool gone = (peer.inbox != nullptr && peer.inbox->peer_gone()) ||
                    (peer.outbox != nullptr && peer.outbox->peer_gone());
  if (!gone) return;
  if (peer.inbox != nullptr) drain(peer, kRingFull);
  if (peer.held_back) return;  // what it left behind waits for room
  doom(peer, Fault::reset);
}

}  // namespace cluster::engine
