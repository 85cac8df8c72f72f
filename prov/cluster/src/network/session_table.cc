#include "network/session_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "wire/control.h"

namespace cluster::network {

SessionTable::SessionTable(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger,
                           PeerReach& reach, TxScheduler& tx)
    : parts_(parts),
      peers_(peers),
      messenger_(messenger),
      reach_(reach),
      bodies_(parts.link->frame_max()),
      tx_(tx),
      started_(parts.environment.clock.now()),
      secrets_(SipHash{parts.environment.random.next(), parts.environment.random.next()}) {}

RemotePeer* SessionTable::find(std::uint32_t session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

void SessionTable::open(RemotePeer& peer, const link::Path& path) {
  begin(peer, path);
  use_carrier(peer);
}

reliability::Flow& SessionTable::answering(Time now, RemotePeer& peer, const link::Path& path,
                                           std::uint32_t session) {
  if (peer.flow == nullptr) {
    add(peer, make_flow(peer, path, session));
    peer.heard_at = now;
    ++half_open_;
  }
  return *peer.flow;
}

reliability::Flow& SessionTable::pending(Time now, RemotePeer& peer, const link::Path& path) {
  if (peer.pending.flow == nullptr) {
    peer.pending.flow = make_flow(peer, path);
    peer.pending.since = now;
    ++half_open_;
  }
  return *peer.pending.flow;
}

void SessionTable::drop_pending(RemotePeer& peer) {
  sessions_.erase(peer.pending.flow->handshake().session());
  peer.pending.flow.reset();
}

void SessionTable::close(RemotePeer& peer) {
  if (peer.flow == nullptr) return;
  ++parts_.environment.counters.sessions_closed;
  const reliability::Handshake& handshake = peer.flow->handshake();
  if (handshake.knows_peer()) {
    // If nothing of the session has arrived, the peer may still have the session, and may use it to call
    // again.
    if (peer.flow->untouched()) {
      peer.close_before(handshake.peer_epoch());
    } else {
      peer.close_session(handshake.peer());
    }
  }
  sessions_.erase(handshake.session());
  tx_.remove(peer);
  peers_.remove_aliases(peer.common);
  peer.sibling = {};
  peer.flow.reset();
}

void SessionTable::promote_pending(RemotePeer& peer) {
  if (peer.pending.flow == nullptr) return;
  add(peer, std::move(peer.pending.flow));
  peer.heard_at = peer.pending.since;
}

/// Ignores an epoch near the end of the range, because it would leave too few larger epochs for later
/// sessions.
void SessionTable::skip_epoch(std::uint64_t epoch) {
  if (epoch < wire::kEpochEnd - wire::kEpochEnd / 8) last_epoch_ = std::max(last_epoch_, epoch);
}

/// Creates a flow. If `session` is not 0, this side has already named it to a caller. This session gets this
/// incarnation's first epoch, which the answer named. Each other session gets a larger epoch than all earlier
/// sessions. Within one incarnation the epochs grow with the clock, and from one incarnation to the next with
/// real time.
std::unique_ptr<reliability::Flow> SessionTable::make_flow(RemotePeer& peer, const link::Path& path,
                                                           std::uint32_t session) {
  std::uint64_t epoch = parts_.epoch;
  if (session == 0) {
    const auto age = static_cast<std::uint64_t>((parts_.environment.clock.now() - started_).count());
    epoch = last_epoch_ = std::max(parts_.epoch + age, last_epoch_ + 1);
  }
  const bool member = peers_.in_address_vector(peer.name());
  while (session == 0 || find(session) != nullptr) {
    const auto drawn = static_cast<std::uint32_t>(parts_.environment.random.next());
    session = SessionSecrets::with_mark(drawn, member ? secrets_.member_mark() : secrets_.other_mark());
  }
  tx_.reserve(sessions_.size() + 1);  // for add()
  std::unique_ptr<reliability::Flow> flow = build_flow(session, peer.name(), epoch, path);
  if (!member) flow->paths().allow_everywhere(false);
  sessions_[session] = &peer;
  return flow;
}

std::unique_ptr<reliability::Flow> SessionTable::build_flow(std::uint32_t session, const SocketAddress& name,
                                                            std::uint64_t epoch, const link::Path& path) {
  const reliability::FlowSettings settings{
      .window = parts_.settings.flow_window,
      .frame_max = parts_.link->frame_max(),
      .seal_overhead = parts_.link->seal_overhead(),
      .overhead = parts_.link->overhead(),
      .ethertype = parts_.link->has_ethertype_path(),
      .ack_delay = parts_.settings.ack_delay,
      .peer_timeout = parts_.settings.peer_timeout,
      .refresh_interval = parts_.settings.refresh_interval,
      .stuck_timeout = parts_.settings.stuck_timeout,
      .turns = &tx_.turns(),
      .outage = &tx_.outage(),
      .asks_kernels = parts_.probe != nullptr,
      .kernel_answers = parts_.probe != nullptr && parts_.probe->answered_here(),
      .lane = parts_.settings.frame_lane,
      .device_reads = parts_.settings.device_reads};
  const reliability::Identity identity{
      parts_.name,
      epoch,
      session,
      secrets_.token_of(session, name),
      parts_.rails,
      parts_.roster != nullptr ? parts_.roster->sibling_of(parts_.name) : SocketAddress{},
      secrets_.incarnation()};
  return std::make_unique<reliability::Flow>(settings, identity, path, parts_.environment.log,
                                             parts_.environment.counters, bodies_, burst_,
                                             parts_.environment.random);
}

std::array<std::uint32_t, link::Thinning::kSessionsMax> SessionTable::members_without_mark() const {
  std::array<std::uint32_t, link::Thinning::kSessionsMax> sessions{};
  std::size_t count = 0;
  for (const RemotePeer* peer : tx_.flows()) {
    const reliability::Handshake& handshake = peer->flow->handshake();
    const bool marked = static_cast<std::uint8_t>(handshake.session()) == secrets_.member_mark();
    if (marked || !handshake.knows_peer() || !peers_.is_member(peer->channel)) continue;
    sessions[count++] = handshake.session();
    if (count == sessions.size()) break;
  }
  return sessions;
}

void SessionTable::add(RemotePeer& peer, std::unique_ptr<reliability::Flow> flow) {
  peer.flow = std::move(flow);
  tx_.add(peer);
}

void SessionTable::use_carrier(RemotePeer& peer) {
  if (peer.channel.carrier != nullptr) return;
  reach_.reached(peer.common, parts_.transport, peer.flow->queue(), parts_.settings.net_eager_max);
}

void SessionTable::on_answer(RemotePeer& peer) {
  note_queue_pairs(peer);
  const bool came_back = peer.common.lost() != nullptr;
  if (came_back || peer.channel.carrier == nullptr) {
    use_carrier(peer);
    peer.common.reach_reason = came_back ? "the lost peer is reachable again" : "the peer opened the session";
    parts_.environment.log.info("peer %s is reached over the %s link: %s", peer.name().text().c_str(),
                                parts_.link->name(), peer.common.reach_reason.c_str());
  }
  tell_queue_pairs(peer);
}

link::Path SessionTable::reply_path(const SocketAddress& name, const link::Path& from) const {
  const Peer* const peer = peers_.find(name);
  if (name == from.to || (peer != nullptr && peers_.is_alias(from.to, *peer))) return without_mac(from);
  return parts_.path_to(name);
}

bool SessionTable::is_own(const SocketAddress& address) const {
  const auto has_address = [&](const multipath::Rail& rail) { return rail.address == address; };
  return address == parts_.name || std::any_of(parts_.rails.begin(), parts_.rails.end(), has_address);
}

/// Processes the peer's answer from one of its addresses. If the answer is valid, peers_ finds the peer by
/// that address as well. The peer's claim alone would not be enough, because the peer could claim another
/// endpoint's address. Therefore the peer has to repeat the challenge that was sent to the address.
void SessionTable::on_alive(Time now, const wire::FrameView& view, const link::Path& from) {
  RemotePeer* peer = find(view.sequence.value);
  if (peer == nullptr || peer->flow == nullptr || peer->flow->handshake().session() != view.sequence.value)
    return;
  const std::uint32_t moves = peer->flow->peer_moves();
  const bool announcing = peer->flow->paths().announcing();
  if (!peer->flow->on_alive(now, view, from)) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  const bool moved = peer->flow->peer_moves() != moves;
  if (moved) {
    note_queue_pairs(*peer);
    peers_.remove_aliases(peer->common);  // the peer may have lost one of its addresses
    parts_.environment.log.info("peer %s now has the address %s", peer->name().text().c_str(),
                                from.to.text().c_str());
  }
  if (moved || announcing) tx_.mark(*peer);
  add_aliases(*peer);
}

void SessionTable::note_queue_pairs(const RemotePeer& peer) {
  const reliability::Handshake& handshake = peer.flow->handshake();
  for (const wire::VerbsAddress& each : handshake.peer_queue_pairs())
    parts_.link->note_queue_pair(each.address, handshake.peer_addresses().front());
}

void SessionTable::add_aliases(RemotePeer& peer) {
  for (const SocketAddress& address : peer.flow->paths().validated_addresses()) {
    if (!is_own(address)) peers_.add_alias(peer.common, address);
  }
}

void SessionTable::on_new_queue_pair(Time now, RemotePeer& peer, const wire::Segment& segment) {
  if (!peer.flow->on_peer_queue_pair(now, segment.peer_id, segment.id)) {
    ++parts_.environment.counters.refused_segment;
    return;
  }
  note_queue_pairs(peer);
  peers_.remove_aliases(peer.common);  // another peer may get the former queue pair
  add_aliases(peer);
}

void SessionTable::announce_queue_pair(std::size_t number, const SocketAddress& queue_pair) {
  for (RemotePeer* const peer : tx_.flows()) {
    for (reliability::Flow* const flow : {peer->flow.get(), peer->pending.flow.get()}) {
      if (flow != nullptr) flow->on_own_queue_pair(number, queue_pair);
    }
    tell_queue_pairs(*peer);
  }
}

/// Sends the peer the queue pairs of this side that were replaced since this side first sent its opening. A
/// peer that has named no queue pair of its own has no path to ours, so it gets no segment.
void SessionTable::tell_queue_pairs(RemotePeer& peer) {
  if (!peer.carries() || peer.common.failed || peer.flow->owed_queue_pairs() == 0) return;
  const reliability::Handshake& handshake = peer.flow->handshake();
  if (handshake.peer_queue_pairs().empty()) return;
  const std::span<const wire::VerbsAddress> ours = handshake.queue_pairs();
  for (std::size_t number = 0; number < ours.size(); ++number) {
    if ((peer.flow->owed_queue_pairs() >> number & 1) == 0) continue;
    messenger_.control().send(peer.channel, {.kind = wire::SegmentKind::new_queue_pair,
                                             .id = ours[number].address.queue_pair_number(),
                                             .peer_id = static_cast<std::uint32_t>(number)});
  }
  peer.flow->on_queue_pairs_told();
  tx_.mark(peer);
}

/// Only the peer knows the session numbers of both sides. So this side answers a challenge that names both,
/// on any path. But if the challenge comes from the new address of a rail, this side does not answer yet, and
/// first checks that the peer has that address. The peer repeats its challenge. The answer to the repeated
/// challenge shows that this side knows the address.
void SessionTable::on_path_challenge(Time now, const wire::FrameView& view, const link::Path& from) {
  RemotePeer* const peer = find(view.session);
  const std::uint32_t asker = view.sequence.value;
  const bool ours = peer != nullptr && peer->flow != nullptr &&
                    peer->flow->handshake().session() == view.session &&
                    peer->flow->handshake().peer_session() == asker && asker != 0;
  if (!ours) {
    ++parts_.environment.counters.refused_stale;
    return;
  }
  const bool listed = peer->flow->handshake().has_address(from.to);
  const bool announced_otherwise = from.to.verbs();  // SegmentKind::new_queue_pair
  if (!listed && (announced_otherwise || peer->flow->check_peer_move(now, view, from, *parts_.link))) return;
  link::send_frame(*parts_.link, wire::ControlFrame::path_response(view).bytes(), from);
}

/// Reminds the peers for which this side waits while no frame to them is in flight. Such a peer still has to
/// send something, for example a `done` or a message.
void SessionTable::remind_idle_peers(Time now) {
  const auto is_member = [this](const RemotePeer* peer) { return peers_.is_member(peer->channel); };
  const std::vector<RemotePeer*>& flows = tx_.flows();
  const auto members = std::ranges::count_if(flows, is_member);
  const auto watch = [&](std::int64_t many) {
    return std::max<Duration>(kIdleBeforeWatch, kIdleBeforeWatchPerPeer * many);
  };
  std::size_t unknown_left = kUnknownReminded;
  protocol::Matcher& matcher = messenger_.matcher();
  const bool any_may_send = matcher.queues().application(true).find_wildcard() != nullptr ||
                            matcher.queues().application(false).find_wildcard() != nullptr;
  drop_half_open(now);
  Time due = kNever;  // when the first peer has to be reminded
  for (RemotePeer* peer : flows) {
    if (peer->channel.waits_for_peer()) {
      due = std::min(due, remind_if_idle(now, *peer, kIdleBeforeReminder, unknown_left));
    } else if (any_may_send) {
      const auto many = is_member(peer) ? members : static_cast<std::int64_t>(flows.size());
      remind_if_idle(now, *peer, watch(many), unknown_left);
    }
  }
  messenger_.matcher().queues().each_directed([&](protocol::Channel& channel) {
    RemotePeer* const peer = parts_.find(transport::peer_of(channel));
    due = std::min(due, peer == nullptr ? now + kReminderInterval
                                        : remind_if_idle(now, *peer, kIdleBeforeReminder, unknown_left));
  });
  const Duration interval =
      due == kNever ? kReminderIntervalIdle : std::clamp(due - now, kReminderInterval, kIdleBeforeReminder);
  next_reminder_ = now + std::max<Duration>(interval, kReminderIntervalPerPeer * members);
}

/// Drops sessions that this side has named to callers but that no frame has named for a while. Even the
/// pending session of a member is dropped. The half-open session of a member stays, because the member may
/// have called and then been stopped. A new session, with its later epoch, would look to that member like
/// another incarnation.
void SessionTable::drop_half_open(Time now) {
  if (half_open_ == 0) return;
  half_open_ = 0;
  const Duration limit = parts_.settings.forget_after();
  const std::vector<RemotePeer*>& flows = tx_.flows();
  for (std::size_t i = flows.size(); i-- > 0;) {
    RemotePeer& peer = *flows[i];
    if (peer.pending.flow != nullptr && now >= peer.pending.since + limit) drop_pending(peer);
    half_open_ += peer.pending.flow != nullptr ? 1 : 0;
    if (!peer.half_open() || peer.carries() || peers_.is_member(peer.channel)) continue;
    if (now < peer.heard_at + limit) {
      ++half_open_;
      continue;
    }
    sessions_.erase(peer.flow->handshake().session());
    tx_.remove(peer);
    peer.flow.reset();
  }
}

/// Reminds the peer if it has been idle for the time `idle`. Returns when the peer has to be checked next.
Time SessionTable::remind_if_idle(Time now, RemotePeer& peer, Duration idle, std::size_t& unknown_left) {
  if (!peer.carries() || !peer.flow->queue().drained()) return now + kReminderInterval;
  if (now - peer.heard_at < idle) return peer.heard_at + idle;
  if (!peers_.is_member(peer.channel)) {
    if (unknown_left == 0) return now + kReminderInterval;
    --unknown_left;
  }
  messenger_.remind(peer.channel);
  return now + idle;
}

}  // namespace cluster::network
