// The way to a peer: chosen on first use, and what happens when it is lost.
#include <algorithm>

#include "engine/core.h"
#include "os/udp_link.h"
#include "reliability/handshake.h"

namespace cluster::engine {
namespace {

constexpr Duration kCourtship = 1s;
/// Looking for those who can be forgotten takes long if there are many peers.
constexpr Duration kForgetEvery = 100ms;

}  // namespace

/// Opens a way to the peer. Whether it lives on this node is found out by trying: only then does its
/// name exist among our sockets.
bool Core::contact(Peer& peer) {
  Log& log = parts_.environment.log;
  if (is_own(peer.name())) {
    self_in_use_ = peer.self = true;
    peer.why = "it is this endpoint";
    peer.channel.carrier = &self_;
    peer.channel.eager_max = parts_.settings.shm_eager_max;
    return true;
  }
  std::string reason = "switched off";
  if (contact_locally(peer, reason)) {
    peer.why = "it lives on this node";
    log.info("path to %s: shared memory (it lives on this node)", peer.name().text().c_str());
    return true;
  }
  if (parts_.link == nullptr) {
    log.warn(
        "no path to %s: no shared memory (%s), and this endpoint has no network link; "
        "see FI_CLUSTER_LINK and FI_CLUSTER_IFACE",
        peer.name().text().c_str(), reason.c_str());
    return false;
  }
  const std::uint8_t link = multipath::rail_towards(parts_.rails, peer.name());
  use_flow(peer, make_flow(peer, {peer.name(), {}, false, link}));
  peer.why = "no shared memory: " + reason;
  log.info("path to %s: %s link (%s)", peer.name().text().c_str(), parts_.link->name(), peer.why.c_str());
  return true;
}

bool Core::is_own(const SocketAddress& name) const {
  const auto has_name = [&](const multipath::Rail& rail) { return rail.address == name; };
  return name == parts_.name || std::any_of(parts_.rails.begin(), parts_.rails.end(), has_name);
}

bool Core::contact_locally(Peer& peer, std::string& reason) {
  if (parts_.host == nullptr) return false;
  shm::Connection connection = parts_.host->connect(peer.name());
  if (connection.outbox == nullptr) {
    reason = std::move(connection.reason);
    return false;
  }
  peer.outbox = std::move(connection.outbox);
  watch(peer.outbox->descriptor(), peer);
  peer.channel.carrier = peer.outbox.get();
  peer.channel.eager_max = parts_.settings.shm_eager_max;
  return true;
}

std::unique_ptr<reliability::Flow> Core::make_flow(Peer& peer, const link::Path& path) {
  const Time now = parts_.environment.clock.now();
  std::uint32_t session = 0;
  while (session == 0 || peers_.by_session(session) != nullptr) {
    session = static_cast<std::uint32_t>(parts_.environment.random.next());
  }
  const reliability::FlowSettings settings{.window = parts_.settings.flow_window,
                                           .frame_max = parts_.link->frame_max(),
                                           .ethertype = parts_.link->has_ethertype_path(),
                                           .ack_delay = parts_.settings.ack_delay,
                                           .peer_timeout = parts_.settings.peer_timeout};
  const reliability::Identity identity{parts_.name, next_epoch(now), session, parts_.rails};
  peers_.add_session(session, peer);
  return std::make_unique<reliability::Flow>(settings, identity, path, parts_.environment.log,
                                             parts_.environment.counters, bodies_);
}

void Core::use_flow(Peer& peer, std::unique_ptr<reliability::Flow> flow) {
  peer.flow = std::move(flow);
  remotes_.push_back(&peer);
  timers_.plan(peer.timer, peer.flow->deadline());
  if (peer.channel.carrier == nullptr) {
    peer.channel.carrier = &peer.flow->queue();
    peer.channel.eager_max = parts_.settings.net_eager_max;
  }
}

/// Somebody says that it is the peer's next life. The present one is not given up for what anybody could have
/// written: the newcomer is told a session made for it, and if it turns to that one it is genuine. One at
/// a time is heard; the next after kCourtship, since the first may have been forged.
void Core::court(Time now, Peer& peer, const wire::FrameView& view, const link::Path& from) {
  if (peer.suitor != nullptr) {
    const reliability::PeerSession known{peer.suitor->handshake().peer_epoch(),
                                         peer.suitor->handshake().peer_session()};
    const bool another =
        reliability::classify_opening(known, view.opening) != reliability::OpeningClass::same;
    if (another && now < peer.suitor_since + kCourtship) {
      ++parts_.environment.counters.refused_stale;
      return;
    }
    if (another) drop_suitor(peer);
  }
  if (peer.suitor == nullptr) {
    peer.suitor = make_flow(peer, way_back(peer, from));
    peer.suitor_since = now;
    half_open_ = true;
  }
  peer.suitor->accept_opening(view, *parts_.link);
}

/// Nodes of one network are set up alike, or by somebody who knows: so it is said once.
void Core::compare_mtu(const Peer& peer, const wire::Opening& opening) {
  const std::size_t ours = std::min(parts_.link->frame_max(), wire::kFrameMax);
  if (said_mtu_differs_ || ours == opening.frame_max) return;
  said_mtu_differs_ = true;
  const SocketAddress::Family family = parts_.name.family();
  parts_.environment.log.warn(
      "path to %s: its interface has MTU %zu, this node's has %zu; the smaller is used (ip link set mtu)",
      peer.name().text().c_str(), os::mtu_for(opening.frame_max, family), os::mtu_for(ours, family));
}

/// Anybody can call, and each costs some 5 KB while it is there and something to remember it by afterwards.
/// Peers in the address vector are always let in; of strangers only so many are, and so many remembered.
/// `carried` is how many are there on this way already.
bool Core::room_for(Time now, const SocketAddress& name, std::size_t carried) {
  if (peers_.expected(name)) return true;
  if (carried >= parts_.settings.flows_max) return false;
  if (peers_.find(name) != nullptr) return true;
  const std::size_t limit = 2 * parts_.settings.flows_max;
  if (peers_.all().size() >= std::min(peers_enough_, limit) && now >= next_forgetting_) {
    next_forgetting_ = now + kForgetEvery;
    peers_.forget([&](const Peer& peer) { return forgettable(now, peer); });
    peers_enough_ = std::max(kPeersFew, 2 * peers_.all().size());
  }
  return peers_.all().size() < limit;
}

/// A stranger of whom nothing is left, and whose last session ended so long ago that no frame of it can come.
bool Core::forgettable(Time now, const Peer& peer) const {
  const bool gone = peer.flow == nullptr && peer.suitor == nullptr && peer.outbox == nullptr &&
                    peer.inbox == nullptr && !peer.self && now >= peer.lost_at + parts_.settings.peer_timeout;
  return gone && !peers_.known(peer.name()) && !messenger_.references(peer.channel);
}

/// True if the present session has proved to be with a later life than whoever asks for its place.
bool Core::outdone(const Peer& peer) {
  return peer.flow->handshake().address_validated() &&
         peer.suitor->handshake().peer_epoch() <= peer.flow->handshake().peer_epoch();
}

void Core::drop_suitor(Peer& peer) {
  peers_.remove_session(peer.suitor->handshake().session());
  peer.suitor.reset();
}

/// Later sessions have larger epochs, within a life by the clock and across lives by real time.
std::uint64_t Core::next_epoch(Time now) {
  const auto age = static_cast<std::uint64_t>((now - started_).count());
  last_epoch_ = std::max(parts_.epoch + age, last_epoch_ + 1);
  return last_epoch_;
}

void Core::doom(Peer& peer, Status status) {
  const auto known = [&](const Doom& doom) { return doom.peer == &peer; };
  if (std::none_of(doomed_.begin(), doomed_.end(), known)) doomed_.push_back({&peer, status});
}

void Core::lose_doomed() {
  while (!doomed_.empty()) {
    const Doom doom = doomed_.back();
    lose(*doom.peer, doom.status);
  }
}

/// Ends everything under way with the peer. If it comes back, its channel serves its next life.
void Core::lose(Peer& peer, Status status) {
  // Its verdict is carried out herewith: it must not fall on the life that may begin before the turn ends.
  std::erase_if(doomed_, [&](const Doom& doom) { return doom.peer == &peer; });
  peer.lost_at = parts_.environment.clock.now();
  const bool in_peace = peer.channel.farewell;
  Log& log = parts_.environment.log;
  if (in_peace) {
    log.info("peer %s has closed", peer.name().text().c_str());
  } else {
    log.warn("peer %s is lost: %s; operations under way with it end with an error",
             peer.name().text().c_str(), describe(status));
  }
  peer.why = in_peace ? "it has closed" : std::string("lost: ") + describe(status);
  messenger_.fail(peer.channel, status, !in_peace);
  if (peer.flow != nullptr) {
    ++parts_.environment.counters.sessions_reset;
    if (peer.flow->handshake().peer_session() != 0) {
      peer.past.note({peer.flow->handshake().peer_epoch(), peer.flow->handshake().peer_session()},
                     peer.flow->handshake().address_validated());
    }
    peers_.remove_session(peer.flow->handshake().session());
    std::erase(remotes_, &peer);
    timers_.cancel(peer.timer);
    if (peer.touched) std::erase(touched_, &peer);
    peer.touched = false;
    if (peer.aliased) peers_.forget_aliases(peer);
    peer.flow.reset();
  }
  if (peer.outbox != nullptr) unwatch(peer.outbox->descriptor());
  peer.outbox.reset();
  if (peer.inbox != nullptr) {
    unwatch(peer.inbox->descriptor());
    std::erase(locals_, &peer);
    lively_ = locals_.size();
    peer.inbox.reset();
  }
  peer.held_back = false;
  if (peer.suitor != nullptr &&
      peer.past.covers(reliability::PeerSession{peer.suitor->handshake().peer_epoch(),
                                                peer.suitor->handshake().peer_session()})) {
    drop_suitor(peer);
  }
  if (peer.suitor != nullptr) {
    use_flow(peer, std::move(peer.suitor));
    peer.why = "it began anew, and called";
  }
}

}  // namespace cluster::engine
