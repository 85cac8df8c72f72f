#include "transport/peer_reach.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace cluster::transport {
namespace {

constexpr std::uint32_t kRegionIntervalMax = 1 << 20;

/// Returns true if the application waits for the end of an operation with the peer. An operation whose success
/// is not reported is over for the application once the application has posted it.
bool keeps_application_waiting(const protocol::Channel& channel) {
  for (auto* each = channel.outgoing.front(); each != nullptr; each = channel.outgoing.after(*each)) {
    if (each->report) return true;
  }
  return channel.rma.puts_pending + channel.rma.gets_pending != 0 || !channel.incoming.empty() ||
         channel.assembly.active();
}

}  // namespace

void PeerReach::add(Transport& transport) {
  if (transports_.size() == Peer::kTransportsMax)
    throw std::length_error("more transports than Peer::kTransportsMax");
  transport.slot_ = transports_.size();
  transports_.push_back(&transport);
  peers_.ask(transports_);
}

OpenResult PeerReach::open(Peer& peer) {
  if (peer.lost() == nullptr) return open_first(peer, 0, lacking_);
  const bool back = std::ranges::any_of(transports_, [&](Transport* each) { return each->look_for(peer); });
  return back ? OpenResult::reached : OpenResult::unreached;
}

/// Opens a carrier through the nearest transport that reaches the peer, beginning with transport number
/// `from`. `reason`: why no nearer transport reaches the peer.
OpenResult PeerReach::open_first(Peer& peer, std::size_t from, std::string reason) {
  for (Transport* const each : std::span(transports_).subspan(from)) {
    switch (each->open(peer, reason)) {
      case OpenResult::unreached: break;
      case OpenResult::later: peer.reach = OpeningSoon{}; return OpenResult::later;
      case OpenResult::reached: peer.reach_reason = std::move(reason); return OpenResult::reached;
    }
  }
  environment_.log.warn("peer %s cannot be reached: %s", peer.name().text().c_str(), reason.c_str());
  return OpenResult::unreached;
}

bool PeerReach::asking(const Peer& peer) const {
  return std::ranges::any_of(transports_, [&](const Transport* each) { return each->asking(peer); });
}

bool PeerReach::contact_awaited(Time now) {
  bool others = false;
  messenger_.matcher().queues().each_directed([&](protocol::Channel& channel) {
    Peer& peer = peer_of(channel);
    if (channel.carrier != nullptr || peer.departed() || asking(peer)) return;
    if (peer.awaited_since == Time{}) peer.awaited_since = now;
    if (now - peer.awaited_since < kContactAfter) {
      others = true;
    } else {
      peer.awaited_since = Time{};
      awaited_.push_back(&peer);
    }
  });
  for (Peer* peer : std::exchange(awaited_, {})) {
    const OpenResult opening = open(*peer);
    // The peer must acknowledge a reminder, so a reminder shows whether the peer is alive. A peer whose
    // carrier acknowledges on post gets no reminder. Such an acknowledgement proves nothing, and this side
    // notices the peer's death in another way.
    if (opening == OpenResult::reached && !peer->channel.carrier->traits().acknowledges_on_post)
      messenger_.remind(peer->channel);
    if (opening == OpenResult::unreached && !asking(*peer)) peers_.mark_failed(*peer, Status::unreachable);
    others |= opening == OpenResult::later;
  }
  return others;
}

void PeerReach::reached(Peer& peer, Transport& by, carrier::Carrier& carrier, std::size_t eager_max) {
  peer.channel.carrier = &carrier;
  peer.channel.eager_max = eager_max;
  peer.reach = Reached{&by};
  for (Transport* const each : transports_) {
    if (each != &by) each->assist(peer);
  }
}

void PeerReach::go_farther(Peer& peer, Transport& by, std::string reason) {
  protocol::GroupArrivals* const groups = messenger_.bindings().engine.groups;
  if (groups != nullptr) groups->on_carrier_left(peer.channel);
  peer.channel.rma.reached = {};
  by.close(peer);
  peer.channel.carrier = nullptr;
  peer.reach = NotMet{};
  if (open_first(peer, by.slot() + 1, std::move(reason)) != OpenResult::reached)
    peers_.mark_failed(peer, Status::unreachable);
}

bool PeerReach::succeeds(Peer& peer, std::uint64_t epoch) {
  bool met_earlier = false;
  for (Transport* const each : transports_) met_earlier |= each->succeeds(peer, epoch);
  return met_earlier;
}

/// Asks the transport for access to the peer's registered memory, at growing intervals. A peer on another
/// node may never offer access, and a peer on this node may not have registered memory yet.
void PeerReach::ask_for_memory(Peer& peer) {
  protocol::ReachedMemory& reached = peer.channel.rma.reached;
  if (reached.accesses_left > 0) {
    --reached.accesses_left;
    return;
  }
  if (peer.transport() != nullptr) reached.access = peer.transport()->reach_memory(peer);
  reached.accesses_left = reached.interval;
  if (reached.interval < kRegionIntervalMax) reached.interval *= 2;
}

void PeerReach::close(Peer& peer, Status status) {
  peer.closed_at = environment_.clock.now();
  // First reports the accesses that the peer has completed. The other pending accesses end with an error
  // below.
  if (carrier::MemoryAccess* const access = peer.channel.rma.reached.access.get()) access->settle();
  const bool orderly = peer.channel.peer_closed;
  const bool was_lost = peer.lost() != nullptr;
  if (!was_lost) log_end(peer, status, orderly);
  peer.reach_reason = orderly ? "the peer has closed" : std::string("lost: ") + describe(status);
  messenger_.fail(peer.channel, status, !orderly);
  for (Transport* const each : transports_) each->close(peer);
  // A peer that has closed or restarted does not count as lost. Neither does a peer for which this process
  // had no memory: the next operation with it may succeed.
  const bool may_succeed = status == Status::reset || status == Status::no_memory;
  if (orderly || (!was_lost && may_succeed)) {
    peer.reach = NotMet{.departed = orderly};
  } else if (status != Status::reset) {
    peer.reach = Lost{status, was_lost ? peer.lost()->since : peer.closed_at};
  }
  if (!orderly && !was_lost) report_loss(peer, status);
  end_abandoned();
  // The peer's next incarnation may begin before this turn ends, and it must not be marked as failed. The
  // mark is cleared only here: if the code above runs out of memory, the mark remains, and the next turn
  // closes the peer.
  peers_.clear_failed(peer);
  for (Transport* const each : transports_) each->after_close(peer);
}

/// The operations end before the peer is closed. Otherwise the log would blame the peer for them.
void PeerReach::leave(Peer& peer) {
  if (peer.transport() != nullptr) peer.transport()->say_goodbye(peer);
  messenger_.fail(peer.channel, Status::canceled, false);
  peer.channel.peer_closed = true;
  close(peer, Status::canceled);
}

std::string PeerReach::loss_detail(const Peer& peer, Status status) const {
  for (const Transport* const each : transports_) {
    if (std::string text = each->loss_detail(peer, status); !text.empty()) return text;
  }
  return {};
}

/// Returns what the user may do about the loss, as a text for the log. Each transport that holds the peer
/// knows what can be wrong with its path to the peer.
const char* PeerReach::advice(const Peer& peer, Status status) const {
  if (status == Status::refused || status == Status::ended || status == Status::reset)
    return " (the peer's own output may say why the peer ended or restarted)";
  for (const Transport* const each : transports_) {
    const char* const advice = each->holds(peer) ? each->advice(status) : "";
    if (*advice != '\0') return advice;
  }
  return "";
}

void PeerReach::log_end(const Peer& peer, Status status, bool orderly) {
  Log& log = environment_.log;
  const bool awaited = peer.channel.waits_for_peer();
  const std::size_t incomplete = protocol::Matcher::incomplete(peer.channel);
  if (orderly && awaited) {
    log.warn("peer %s has closed before operations with it were complete; these operations end with an error",
             peer.name().text().c_str());
  } else if (orderly && incomplete != 0) {
    log.warn(
        "peer %s has closed before it sent %zu messages that it had announced: receives that match them end "
        "with an error",
        peer.name().text().c_str(), incomplete);
  } else if (orderly) {
    log.info("peer %s has closed", peer.name().text().c_str());
  } else if (closing_ && !keeps_application_waiting(peer.channel)) {
    log.info(
        "peer %s has gone while this endpoint closes: %s; the application waits for no operation with it",
        peer.name().text().c_str(), describe(status));
  } else if (!awaited && !peers_.in_address_vector(peer.name())) {
    log.info("peer %s, which is not in the address vector, is lost: %s", peer.name().text().c_str(),
             describe(status));
  } else {
    log.warn("peer %s is lost: %s%s; unfinished operations with the peer end with an error%s",
             peer.name().text().c_str(), describe(status), loss_detail(peer, status).c_str(),
             advice(peer, status));
  }
}

/// Reports the loss to the event queue, and to collective operations that wait for the peer.
void PeerReach::report_loss(const Peer& peer, Status status) {
  const protocol::EndpointBindings& bindings = messenger_.bindings();
  if (bindings.losses != nullptr) {
    bindings.losses->peer_lost(peers_.handle_of(peer.channel), peer.name(), status);
  }
  if (bindings.engine.internal != nullptr) bindings.engine.internal->member_lost(peer.name(), status);
}

/// The endpoint itself does not count as a peer that could send. The fast lane posts receives with the pool's
/// kept requests, and does not call this function (shm/fast_lane.h). So the function releases these requests.
void PeerReach::end_abandoned() {
  if (!settings_.end_abandoned) return;
  Status cause = Status::ok;
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->transport() != nullptr && peer->transport()->reaches_others()) return;
    if (const Lost* const lost = peer->lost()) cause = lost->cause;
  }
  if (cause == Status::ok) return;
  messenger_.matcher().fail_wildcards(cause);
  messenger_.parts().pulls_.pool().release_kept();
}

void PeerReach::close_if_failed(Peer& peer) {
  for (const PeerTable::Failure& failure : peers_.failed()) {
    if (failure.peer == &peer) return close(peer, failure.status);
  }
}

void PeerReach::close_failed() {
  while (!peers_.failed().empty()) {
    const PeerTable::Failure failure = peers_.failed().back();
    close(*failure.peer, failure.status);
  }
}

void PeerReach::announce_close() {
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    for (Transport* const each : transports_) each->say_goodbye(*peer);
    peer->channel.rma.reached = {};  // the access belongs to a transport, which is destroyed before the peer
  }
}

}  // namespace cluster::transport
