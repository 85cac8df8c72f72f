#include "engine/carrier_selector.h"

#include <algorithm>
#include <utility>

namespace cluster::engine {
namespace {

constexpr std::uint32_t kRegionIntervalMax = 1 << 20;
/// The peer answers in a turn of its engine, and its application may compute for long before it makes a call.
constexpr Duration kGreetingMax = 60s;

bool is_loopback(const SocketAddress& address) {
  const ConstBytes ip = address.ip();
  if (address.family() == SocketAddress::Family::v4) return ip.front() == std::byte{127};
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  return ip.size() == 16 && ip.back() == std::byte{1} && std::all_of(ip.begin(), ip.end() - 1, is_zero);
}

}  // namespace

Reach CarrierSelector::open(Peer& peer) {
  Log& log = parts_.environment.log;
  if (sessions_.is_own(peer.name())) {
    local_.use_self(peer, peers_.find_or_add(parts_.name));
    peer.channel.eager_max = parts_.settings.shm_eager_max;
    peer.carrier_reason = "the peer is this endpoint";
    return Reach::reached;
  }
  std::string reason = "switched off";
  const Reach by_ring = open_ring(peer, reason);
  if (by_ring == Reach::later && put_off(peer)) return Reach::later;
  if (by_ring == Reach::reached) {
    peer.carrier_reason = "the peer is on this node";
    log.info("peer %s is reached by shared memory: it is on this node", peer.name().text().c_str());
    return Reach::reached;
  }
  if (parts_.link == nullptr) {
    log.warn(
        "peer %s cannot be reached: no shared memory (%s), and this endpoint has no network link; "
        "see FI_CLUSTER_LINK and FI_CLUSTER_IFACE",
        peer.name().text().c_str(), reason.c_str());
    return Reach::unreached;
  }
  if (is_loopback(peer.name()) && !is_loopback(parts_.name) && !std::exchange(logged_loopback_, true)) {
    log.warn("peer %s will hardly be reached from %s: a loopback address was given by another node: look at its FI_CLUSTER_IFACE",
             peer.name().text().c_str(), parts_.name.text().c_str());
  }
  open_session(peer);
  peer.carrier_reason = "no shared memory: " + reason;
  log.info("peer %s is reached by the %s link: %s", peer.name().text().c_str(), parts_.link->name(),
           peer.carrier_reason.c_str());
  return Reach::reached;
}

/// False: it has been tried for long enough.
bool CarrierSelector::put_off(Peer& peer) {
  Peer::Local::Connecting& connecting = peer.local.connecting;
  const Time now = parts_.environment.clock.now();
  if (now >= connecting.next_try + kQueueFullMax) connecting.since = now;  // of another attempt
  if (now >= connecting.since + kQueueFullMax) return false;
  if (now >= connecting.next_try) connecting.next_try = now + kQueueFullRetry;
  return true;
}

Reach CarrierSelector::open_ring(Peer& peer, std::string& reason) {
  if (parts_.local_listener == nullptr) return Reach::unreached;
  const Time next_try = peer.local.connecting.next_try;
  if (next_try != Time{} && parts_.environment.clock.now() < next_try) {
    reason = "its queue of connections is full";
    return Reach::later;
  }
  greetings_.reserve(greetings_.size() + 1);
  shm::Connection connection = parts_.local_listener->connect(peer.name());
  if (connection.outbox == nullptr) {
    reason = std::move(connection.reason);
    return connection.later ? Reach::later : Reach::unreached;
  }
  if (connection.outbox->connection().greeting() == shm::HelloSender::State::waiting)
    greetings_.push_back({peer.name(), parts_.environment.clock.now()});
  local_.add_outbox(peer, std::move(connection.outbox));
  peer.channel.eager_max = parts_.settings.shm_eager_max;
  return Reach::reached;
}

/// A peer on another node never answers; one of this node may have registered nothing yet.
void CarrierSelector::connect_regions(Peer& peer) {
  protocol::ReachedRegions& reached = peer.channel.rma.reached;
  if (reached.accesses_left > 0) {
    --reached.accesses_left;
    return;
  }
  if (!peer.self) reached.regions = parts_.region_connector->connect(peer.name());
  reached.accesses_left = reached.interval;
  if (reached.interval < kRegionIntervalMax) reached.interval *= 2;
}

void CarrierSelector::accept() {
  parts_.local_listener->accept(accepted_inboxes_);
  while (!accepted_inboxes_.empty()) {
    if (!adopt(accepted_inboxes_.front())) return;
    accepted_inboxes_.erase(accepted_inboxes_.begin());
  }
}

void CarrierSelector::advance_greetings() {
  std::erase_if(greetings_, [this](const Greeting& greeting) { return is_settled(greeting); });
}

bool CarrierSelector::is_settled(const Greeting& greeting) {
  Peer* const peer = peers_.find(greeting.peer);
  if (peer == nullptr || peer->outbox == nullptr) return true;
  switch (peer->outbox->advance_greeting()) {
    case shm::HelloSender::State::sent: return true;
    case shm::HelloSender::State::failed: break;
    case shm::HelloSender::State::waiting:
      if (parts_.environment.clock.now() < greeting.since + kGreetingMax) return false;
  }
  // The end of the peer's process looks like that, too, and is judged elsewhere.
  if (!peer->outbox->peer_gone()) leave_ring(*peer);
  return true;
}

/// Nothing was written to the ring.
void CarrierSelector::leave_ring(Peer& peer) {
  ++parts_.environment.counters.refused_forged;
  parts_.environment.log.warn(
      "the process of this node that uses the address %s in shared memory does not show that it has the key of this "
      "process: the peer is reached over the network",
      peer.name().text().c_str());
  closer_.leave_carrier(peer);
  peer.carrier_reason = "no shared memory: its reader has not shown the key";
  if (parts_.link != nullptr) return open_session(peer);
  peers_.mark_failed(peer, Status::unreachable);
}

/// Where there is no memory the inbox stays where it is, for the next call: its peer believes that what it sends arrives. So it does
/// if this is false: the peer cannot be answered yet.
bool CarrierSelector::adopt(std::unique_ptr<shm::Inbox>& inbox) {
  if (const char* const reason = why_refused(parts_.environment.clock.now(), *inbox)) {
    ++parts_.environment.counters.shm_refused;
    if (!std::exchange(logged_refusal_, true)) {
      parts_.environment.log.warn("shared memory refused to %s: %s (further refusals are only counted)",
                                  inbox->peer().text().c_str(), reason);
    }
    return true;
  }
  Peer& peer = peers_.find_or_add(inbox->peer());
  peer.absence.lost = Status::ok;
  peer.absence.departed = false;
  if (peer.channel.carrier == nullptr && open(peer) == Reach::later) return false;  // answers need a carrier
  local_.add_inbox(peer, std::move(inbox));
  return true;
}

/// Null if the ring is taken; an earlier one of the same name has then been closed.
const char* CarrierSelector::why_refused(Time now, const shm::Inbox& inbox) {
  if (!admission_.admits(now, inbox.peer(), local_.rings().size()))
    return "too many peers that are not in the address vector";
  return close_earlier(peers_.find_or_add(inbox.peer()), inbox);
}

/// What this side has begun with the process that had the name before, or while no process had it, must not end the ring of the one
/// that has it now: that would take this process for dead.
void CarrierSelector::end_predecessor(Peer& peer, const shm::Inbox& next) {
  const bool reader_gone = peer.outbox != nullptr && peer.outbox->peer_gone();
  const reliability::Flow* const flow = peer.flow.get();
  const bool met_earlier =
      flow != nullptr && flow->handshake().knows_peer() && next.peer_epoch() > flow->handshake().peer_epoch();
  if (reader_gone || met_earlier) {
    closer_.close(peer, Status::reset);
  } else if (flow != nullptr) {
    peer.flow->liveness().forget_path_errors();
  }
}

/// A second ring of the same name is the peer's next incarnation, if the present one has ended: while its
/// socket is open, another process that uses the name is an impostor. Null, or why the ring is refused.
const char* CarrierSelector::close_earlier(Peer& peer, const shm::Inbox& next) {
  closer_.close_if_failed(peer);
  if (peer.inbox == nullptr) {
    end_predecessor(peer, next);
    return nullptr;
  }
  if (!peer.inbox->peer_gone()) return "another process uses its address, and is still there";
  if (next.peer_epoch() <= peer.inbox->peer_epoch()) return "its clock is behind that of its predecessor";
  if (!local_.drain(peer)) return "messages of its predecessor wait for space in the unexpected store";
  closer_.close(peer, Status::reset);
  return nullptr;
}

}  // namespace cluster::engine
