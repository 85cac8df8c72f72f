// Peers of this node: their rings are read directly, their death is an end-of-file.
#include <algorithm>
#include <utility>

#include "engine/core.h"
#include "shm/layout.h"

namespace cluster::engine {
namespace {

/// Segments taken from one ring before the next has its turn.
constexpr std::size_t kRingBurst = 64;
/// Beyond so many peers the silent ones take turns, so many in each.
constexpr std::size_t kAlwaysHeard = 16;
constexpr std::size_t kSilentPerTurn = 4;
constexpr std::uint32_t kTurnsPerReview = 1 << 12;
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

/// Who has spoken lately is looked at in every turn, the others one after another: an idle peer costs
/// nothing.
bool Core::receive_local(Look look) {
  bool news = false;
  for (std::size_t i = 0; i < lively_; ++i) news |= hear(*locals_[i]);
  const std::size_t silent = locals_.size() - lively_;
  const std::size_t most = look == Look::everywhere ? silent : std::min(silent, kSilentPerTurn);
  for (std::size_t i = 0; i < most; ++i) {
    next_silent_ = next_silent_ + 1 < locals_.size() ? std::max(next_silent_ + 1, lively_) : lively_;
    if (!hear(*locals_[next_silent_])) continue;
    news = true;
    std::swap(locals_[next_silent_], locals_[lively_++]);
  }
  if (turns_ % kTurnsPerReview == 0 && locals_.size() > kAlwaysHeard) review_locals();
  return news;
}

/// True if there was something.
bool Core::hear(Peer& peer) {
  if (peer.inbox->unchanged()) return false;
  const bool news = drain(peer, kRingBurst);
  peer.spoke |= news;
  if (peer.inbox->broken()) doom(peer, Status::reset);
  return news;
}

void Core::review_locals() {
  const auto silent =
      std::partition(locals_.begin(), locals_.end(), [](const Peer* peer) { return peer->spoke; });
  lively_ = static_cast<std::size_t>(silent - locals_.begin());
  for (Peer* peer : locals_) peer->spoke = false;
}

/// True if there was something.
bool Core::drain(Peer& peer, std::size_t limit) {
  shm::PeekedSegment arrival;
  std::size_t count = 0;
  // Behind the last segment nobody looks for another in vain: the application waits for this one.
  bool more = true;
  for (; more && count < limit && peer.inbox->peek(arrival) && takes(peer, arrival.segment); ++count) {
    messenger_.arrive(peer.channel, arrival.segment, arrival.payload);
    peer.inbox->pop();
    more = peer.inbox->has_next();
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
    lose(peer, Status::reset);
  }
  peer.inbox = std::move(inbox);
  peer.channel.memory = peer.inbox->memory();
  locals_.push_back(&peer);
  lively_ = locals_.size();
  watch(peer.inbox->descriptor(), peer);
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
  doom(peer, Status::reset);
}

}  // namespace cluster::engine
