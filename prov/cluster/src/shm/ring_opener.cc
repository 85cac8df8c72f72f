#include "shm/ring_opener.h"

#include <utility>

namespace cluster::shm {

using transport::OpenResult;

namespace {

/// The longest time to wait for the peer's answer. The peer answers in a turn of its engine, and its
/// application may compute for a long time before it calls the library.
constexpr Duration kGreetingMax = 60s;

}  // namespace

OpenResult RingOpener::open(Peer& peer, std::string& reason) {
  const OpenResult opening = try_open(peer, reason);
  if (opening != OpenResult::later) return opening;
  return put_off(parts_.of(peer)) ? OpenResult::later : OpenResult::unreached;
}

/// Sets the time of the next attempt. Returns false if the attempts have lasted for kQueueFullMax.
bool RingOpener::put_off(LocalPeer& peer) {
  const Time now = parts_.context.environment.clock.now();
  if (now >= peer.next_connection + kQueueFullMax)
    peer.connecting_since = now;  // the last attempt was long ago, so a new series of attempts begins
  if (now >= peer.connecting_since + kQueueFullMax) return false;
  if (now >= peer.next_connection) peer.next_connection = now + kQueueFullRetry;
  return true;
}

OpenResult RingOpener::try_open(Peer& peer, std::string& reason) {
  const LocalPeer* const known = parts_.find(&peer);
  const Time next_try = known != nullptr ? known->next_connection : Time{};
  if (next_try != Time{} && parts_.context.environment.clock.now() < next_try) {
    reason = "too many connections to the peer wait to be accepted";
    return OpenResult::later;
  }
  // Allocates first. If memory ran out later, the peer would have a connection that this side has lost.
  greetings_.reserve(greetings_.size() + 1);
  parts_.context.waiter.reserve();
  LocalPeer& local = parts_.of(peer);
  Connection connection = parts_.listener.connect(peer.name());
  if (connection.outbox == nullptr) {
    if (known == nullptr) parts_.drop(peer);
    reason = std::move(connection.reason);
    return connection.later ? OpenResult::later : OpenResult::unreached;
  }
  if (connection.outbox->greeting() == HelloSender::State::waiting)
    greetings_.push_back({peer.name(), parts_.context.environment.clock.now()});
  local_.add_outbox(local, std::move(connection.outbox));
  return OpenResult::reached;
}

void RingOpener::accept() {
  parts_.listener.accept(accepted_);
  while (!accepted_.empty()) {
    if (!adopt(accepted_.front())) return;
    accepted_.erase(accepted_.begin());
  }
}

void RingOpener::advance_greetings() {
  std::erase_if(greetings_, [this](const Greeting& greeting) { return is_settled(greeting); });
}

bool RingOpener::is_settled(const Greeting& greeting) {
  LocalPeer* const peer = parts_.find(parts_.context.peers.find(greeting.peer));
  if (peer == nullptr || peer->outbox == nullptr) return true;
  switch (peer->outbox->advance_greeting()) {
    case HelloSender::State::sent: return true;
    case HelloSender::State::failed: break;
    case HelloSender::State::waiting:
      if (parts_.context.environment.clock.now() < greeting.since + kGreetingMax) return false;
  }
  // If the peer's process has ended, the greeting fails, too. LocalDeaths handles that case.
  if (!peer->outbox->peer_gone()) leave_ring(*peer);
  return true;
}

/// Gives up the ring, to which nothing was written. After that, messages to the peer use the network.
void RingOpener::leave_ring(LocalPeer& peer) {
  ++parts_.context.environment.counters.refused_forged;
  parts_.context.environment.log.warn(
      "no shared memory to %s: the process at this address on this node has not proved that it has this "
      "endpoint's key (does it belong to another job?); messages use the network instead",
      peer.name().text().c_str());
  parts_.context.reach.go_farther(peer.common, parts_.transport,
                                  "no shared memory: the peer has not proved that it has the key");
}

/// Adopts or refuses the ring of a peer. Returns false if this side cannot answer the peer yet. In this case
/// the caller keeps the inbox for its next call. If memory runs out, this function throws, and the caller
/// keeps the inbox as well, because the peer already sends messages into it.
bool RingOpener::adopt(std::unique_ptr<Inbox>& inbox) {
  if (const char* const reason = why_refused(parts_.context.environment.clock.now(), *inbox)) {
    ++parts_.context.environment.counters.shm_refused;
    if (!std::exchange(logged_refusal_, true)) {
      parts_.context.environment.log.warn(
          "refused shared memory for %s: %s (further refusals are only counted)",
          inbox->peer().text().c_str(), reason);
    }
    return true;
  }
  Peer& peer = parts_.context.peers.find_or_add(inbox->peer());
  parts_.context.reach.called(peer);
  if (peer.channel.carrier == nullptr && parts_.context.reach.open(peer) == OpenResult::later)
    return false;  // this side needs a carrier to answer
  local_.add_inbox(parts_.of(peer), std::move(inbox));
  return true;
}

/// Returns why the ring is refused, or null if it may be adopted. If it may be adopted, this function has
/// closed the earlier ring of the same name, if there was one.
const char* RingOpener::why_refused(Time now, Inbox& inbox) {
  if (!parts_.context.admission.admits(now, inbox.peer(), local_.rings().size()))
    return "too many peers that are not in the address vector";
  return close_earlier(parts_.context.peers.find_or_add(inbox.peer()), inbox);
}

/// Called if there is no earlier ring from a process of this name. Ends the operations that this side has
/// begun with an earlier process of the name. If such an operation failed later, this side would close the
/// ring of the new process. As a result, the new process would believe that this process is dead.
///
/// If the reader of this side's ring is gone, the writer of `next` may be a new process. But if the writer is
/// gone, too, both are one process: it has opened `next` in answer to this side's ring, and has closed at
/// once. So `next` then shows no new process.
void RingOpener::end_predecessor(Peer& peer, Inbox& next) {
  const LocalPeer* const local = parts_.find(&peer);
  const bool reader_gone = local != nullptr && local->outbox != nullptr && local->outbox->peer_gone();
  const bool succeeded = reader_gone && !next.peer_gone();
  if (succeeded || parts_.context.reach.succeeds(peer, next.peer_epoch()))
    parts_.context.reach.close(peer, Status::reset);
}

/// Closes the earlier ring of the same name, if there is one. Returns null, or why the new ring is refused.
/// If the earlier process has ended, the new ring belongs to the next incarnation of the peer. If the earlier
/// process is alive, the new process is an impostor.
const char* RingOpener::close_earlier(Peer& peer, Inbox& next) {
  parts_.context.reach.close_if_failed(peer);
  LocalPeer* const local = parts_.find(&peer);
  if (local == nullptr || local->inbox == nullptr) {
    end_predecessor(peer, next);
    return nullptr;
  }
  if (!local->inbox->peer_gone()) return "another process has this address and still runs";
  if (next.peer_epoch() <= local->inbox->peer_epoch()) {
    return "the endpoint that had this address before was opened later, or at the same time (was the clock "
           "set back?)";
  }
  if (!local_.drain(*local)) {
    return "messages from the process that had this address before still wait for space in the store "
           "for unexpected messages";
  }
  parts_.context.reach.close(peer, Status::reset);
  return nullptr;
}

}  // namespace cluster::shm
