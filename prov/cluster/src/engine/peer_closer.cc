#include "engine/peer_closer.h"

#include <cstdio>
#include <string>

namespace cluster::engine {

namespace {

const char* cure_for(Status status) {
  switch (status) {
    case Status::unreachable: return " (is its node off, a cable unplugged, or does a firewall drop UDP?)";
    case Status::refused:
    case Status::ended:
    case Status::reset: return " (why it ended or began anew is in its own output)";
    case Status::exhausted: return " (ulimit -n there)";
    case Status::stuck: return " (cluster-info --why there says what it does)";
    default: return "";
  }
}

std::string seconds(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(time.count()) / 1e9);
  return text;
}

/// After how long it was given up, and which setting says so; empty if no timeout has ended it.
std::string timeout_text(const Peer& peer, Status status, const EngineSettings& settings) {
  if (status == Status::stuck) return ", no answer for " + seconds(settings.stuck_timeout) + " (FI_CLUSTER_STUCK_TIMEOUT)";
  if (status != Status::unreachable || peer.flow == nullptr) return "";
  const Duration silence = peer.flow->liveness().silence().lasted();
  return silence < settings.peer_timeout ? "" : ", no answer for " + seconds(silence) + " (FI_CLUSTER_PEER_TIMEOUT)";
}

}  // namespace

void PeerCloser::close(Peer& peer, Status status) {
  peer.closed_sessions.closed_at = parts_.environment.clock.now();
  messenger_.rma().posted().settle_last(peer.channel);
  const bool orderly = peer.channel.peer_closed;
  const bool was_lost = peer.absence.lost != Status::ok;
  if (!was_lost) log_end(peer, status, orderly);
  peer.carrier_reason = orderly ? "the peer has closed" : std::string("lost: ") + describe(status);
  messenger_.fail(peer.channel, status, !orderly);
  sessions_.close(peer);
  local_.remove(peer);
  // One that has closed, or begun anew, is not out of reach.
  if (!orderly && status != Status::reset) {
    peer.absence.lost = status;
    if (!was_lost) peer.absence.lost_at = peer.closed_sessions.closed_at;
  }
  peer.absence.departed = orderly;
  if (!orderly && !was_lost) report_loss(peer, status);
  end_abandoned();
  // The peer's next incarnation may begin before this turn ends: it must not be marked as failed. If there was no memory
  // for something above, the peer is closed in the next turn.
  peers_.clear_failed(peer);
  sessions_.promote_pending(peer);
}

void PeerCloser::leave_carrier(Peer& peer) {
  protocol::GroupArrivals* const groups = messenger_.message_parts().context.bindings.engine.groups;
  if (groups != nullptr) groups->on_carrier_left(peer.channel);
  local_.remove(peer);
  peer.channel.carrier = nullptr;
}

void PeerCloser::log_end(const Peer& peer, Status status, bool orderly) {
  Log& log = parts_.environment.log;
  const bool awaited = peer.channel.waits_for_peer();
  const std::size_t incomplete = protocol::Matcher::incomplete(peer.channel);
  if (orderly && awaited) {
    log.warn("peer %s has closed before operations with it were complete: they end with an error",
             peer.name().text().c_str());
  } else if (orderly && incomplete != 0) {
    log.warn("peer %s has closed with %zu messages announced and not sent: receives that match them end with an error",
             peer.name().text().c_str(), incomplete);
  } else if (orderly) {
    log.info("peer %s has closed", peer.name().text().c_str());
  } else if (!awaited && !peers_.in_address_vector(peer.name())) {
    log.info("peer %s, which is not in the address vector, is lost: %s", peer.name().text().c_str(), describe(status));
  } else {
    log.warn("peer %s is lost: %s%s; operations under way with it end with an error%s", peer.name().text().c_str(),
             describe(status), timeout_text(peer, status, parts_.settings).c_str(), cure_for(status));
  }
}

/// To the event queue, and to collectives that wait for it.
void PeerCloser::report_loss(const Peer& peer, Status status) {
  const protocol::EndpointBindings& bindings = messenger_.message_parts().context.bindings;
  if (bindings.losses != nullptr) {
    bindings.losses->peer_lost(peers_.handle_of(peer.channel), peer.name(), status);
  }
  if (bindings.engine.collectives != nullptr) bindings.engine.collectives->member_lost(peer.name(), status);
}

/// Requests that are kept would be posted past this (fast_lane.h).
void PeerCloser::end_abandoned() {
  if (!parts_.settings.end_abandoned) return;
  Status cause = Status::ok;
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->channel.carrier != nullptr && !peer->self) return;
    if (peer->absence.lost != Status::ok) cause = peer->absence.lost;
  }
  if (cause == Status::ok) return;
  messenger_.matcher().fail_wildcards(cause);
  messenger_.message_parts().pulls.pool().release_kept();
}

void PeerCloser::close_if_failed(Peer& peer) {
  for (const PeerTable::Failure& failure : peers_.failed()) {
    if (failure.peer == &peer) return close(peer, failure.status);
  }
}

void PeerCloser::close_failed() {
  while (!peers_.failed().empty()) {
    const PeerTable::Failure failure = peers_.failed().back();
    close(*failure.peer, failure.status);
  }
}

void PeerCloser::announce_close() {
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->outbox != nullptr) {
      wire::Segment notice;
      notice.kind = wire::SegmentKind::close;
      peer->outbox->post(notice, {}, carrier::PayloadMode::copy, 0);
    }
    if (peer->flow != nullptr) peer->flow->close(parts_.environment.clock.now(), *parts_.link);
  }
}

}  // namespace cluster::engine
