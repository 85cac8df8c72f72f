#include "engine/peer_closer.h"

#include <string>

namespace cluster::engine {

void PeerCloser::close(Peer& peer, Status status) {
  // The mark must not fall on the incarnation that may begin before the turn ends.
  peers_.clear_failed(peer);
  peer.closed_sessions.closed_at = parts_.environment.clock.now();
  const bool announced = peer.channel.farewell;
  Log& log = parts_.environment.log;
  if (announced) {
    log.info("peer %s has closed", peer.name().text().c_str());
  } else {
    log.warn("peer %s is lost: %s; operations under way with it end with an error",
             peer.name().text().c_str(), describe(status));
  }
  peer.path_reason = announced ? "it has closed" : std::string("lost: ") + describe(status);
  messenger_.fail(peer.channel, status, !announced);
  sessions_.close(peer);
  local_.remove(peer);
  sessions_.promote_pending(peer);
}

void PeerCloser::close_failed() {
  while (!peers_.failed().empty()) {
    const PeerTable::Failure failure = peers_.failed().back();
    close(*failure.peer, failure.status);
  }
}

void PeerCloser::send_farewells() {
  for (const std::unique_ptr<Peer>& peer : peers_.all()) {
    if (peer->outbox != nullptr) {
      wire::Segment farewell;
      farewell.kind = wire::SegmentKind::farewell;
      peer->outbox->post(farewell, {}, carrier::PayloadMode::copy, 0);
    }
    if (peer->flow != nullptr) peer->flow->close(parts_.environment.clock.now(), *parts_.link);
  }
}

}  // namespace cluster::engine
