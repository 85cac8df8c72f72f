#include "engine/group_table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/end_of_memory.h"
#include "link/link.h"
#include "reliability/frame_body.h"

namespace cluster::engine {

using group::Group;
using group::GroupEvent;
using group::Member;
using transport::OpenResult;
using wire::SegmentKind;

namespace {

constexpr std::size_t kBurst = link::MulticastReceiver::kBurst;
constexpr std::size_t kBurstsMax = 64;       ///< the largest number of bursts that one turn reads
constexpr std::size_t kBodiesPerTurn = 256;  ///< how many segments one turn delivers from each member
constexpr std::size_t kBodyMin = 256;
/// The time after which the table retries work that got no memory. No event announces that memory is free
/// again.
constexpr Duration kRetryInterval = 10ms;
/// The limit for a lost member. All data of the member is delivered at once, because this data cannot be
/// delivered later.
constexpr std::size_t kAllBodies = SIZE_MAX;

/// The time between two reads of an empty socket. Each read is a system call, and without this limit a
/// process that polls would read in every turn. (A sleeping thread needs no reads, because the socket
/// wakes it.) The members of a team mostly wait for something other than the group. So the interval grows for
/// a team's socket, unless an operation waits for the group.
constexpr Duration kPollInterval = 4us;
constexpr Duration kPollIntervalMax = 256us;

/// Returns true if the sender of a segment of this kind expects that this endpoint has a certain membership
/// or stream. If the endpoint has none, the sender must be told.
bool wants_answer(SegmentKind kind) {
  return kind == SegmentKind::group_join || kind == SegmentKind::group_start ||
         kind == SegmentKind::group_status || kind == SegmentKind::group_nak ||
         kind == SegmentKind::group_ask || kind == SegmentKind::group_repair;
}

/// Returns the size of the largest body. A body of this size also fits into a segment of a flow, because the
/// frames of a flow may be as long as the frames of a group.
std::size_t body_max(const link::Link* link) {
  const std::size_t frame = link != nullptr ? link->frame_max() : reliability::kFrameMin;
  return std::max(kBodyMin, frame - group::kBodyOverhead);
}

bool may_join(const Group& group, PeerTable& peers, protocol::Channel& channel) {
  const std::vector<SocketAddress>& roster = group.settings().roster;
  if (roster.empty()) return peers.is_member(channel);
  return std::find(roster.begin(), roster.end(), channel.name) != roster.end();
}

}  // namespace

void GroupEntry::meet(Peer& peer) {
  group->meet(peer.name(), &peer, peer.channel.carrier);
  unreached |= peer.channel.carrier == nullptr;
}

void GroupEntry::expect(bool waits) {
  if (!waits) {
    if (awaited > 0) --awaited;
    return;
  }
  poll_interval = kPollInterval;
  next_poll = {};
  ++awaited;
}

void GroupEntry::note_poll(Time now, bool arrivals, bool more) {
  const bool soon = arrivals || awaited > 0 || content == protocol::GroupProtocol::Content::application;
  poll_interval =
      soon ? kPollInterval : std::min(std::max(poll_interval, kPollInterval) * 2, kPollIntervalMax);
  unread = more;
  next_poll = more ? now : now + poll_interval;
}

void GroupEntry::drop_ended_streams(protocol::GroupProtocol& protocol) {
  for (auto item = incoming.begin(); item != incoming.end();) {
    const group::Member* const member = group->find(item->first);
    const bool lives =
        member != nullptr && member->stream != nullptr && member->stream->id() == item->second.stream;
    if (!lives) protocol.abort(item->second.assembly, Status::reset);
    item = lives ? std::next(item) : incoming.erase(item);
  }
}

void GroupEntry::drop_streams(protocol::GroupProtocol& protocol, Status status) {
  for (; !incoming.empty(); incoming.erase(incoming.begin()))
    protocol.abort(incoming.begin()->second.assembly, status);
}

GroupEntry* GroupTable::find(std::uint64_t handle) {
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const auto& entry) { return entry->handle == handle; });
  return found == groups_.end() ? nullptr : found->get();
}

Status GroupTable::join(const JoinOp& op, std::uint64_t& handle) {
  std::vector<SocketAddress> roster;
  std::copy_if(op.roster.begin(), op.roster.end(), std::back_inserter(roster),
               [this](const SocketAddress& name) { return name != parts_.name; });
  std::string reason = "this endpoint has no network link";
  std::unique_ptr<link::MulticastReceiver> socket;
  if (parts_.multicast != nullptr) socket = parts_.multicast->join(op.address, roster, reason);
  if (socket == nullptr && op.roster.empty()) {
    parts_.environment.log.warn(
        "cannot join multicast group %s: multicast is not available (%s), and only a group with a list of "
        "members can do without multicast",
        op.address.text().c_str(), reason.c_str());
    return Status::unreachable;
  }
  if (socket == nullptr) {
    parts_.environment.log.info(
        "multicast group %s cannot use multicast (%s); messages go to its members by unicast",
        op.address.text().c_str(), reason.c_str());
  }
  auto entry = std::make_unique<GroupEntry>();
  entry->handle = kGroupHandles | opened_++;
  entry->content = op.content;
  entry->context = op.context;
  group::GroupSettings settings{.key = op.key,
                                .path = {.to = op.address},
                                .role = op.role,
                                .roster = roster,
                                .body_max = body_max(parts_.link.get())};
  settings.incarnation = parts_.epoch + opened_;
  settings.silence_max = parts_.settings.peer_timeout;
  settings.outage = &outage_;
  const auto stream = static_cast<std::uint32_t>(parts_.environment.random.next() | 1);
  entry->group = std::make_unique<Group>(std::move(settings), stream, parts_.environment.random);
  entry->socket = std::move(socket);
  for (const SocketAddress& name : roster) entry->meet(peers_.find_or_add(name));
  // Adds the entry to the groups last, after everything that can throw. If something threw later, the group
  // would never be closed.
  groups_.reserve(groups_.size() + 1);
  if (entry->socket != nullptr && entry->socket->descriptor() >= 0)
    waiter_.watch(entry->socket->descriptor(), *this);
  handle = entry->handle;
  groups_.push_back(std::move(entry));
  turn_now(*groups_.back());
  return Status::ok;
}

bool GroupTable::joined(std::uint64_t handle) {
  const GroupEntry* const entry = find(handle);
  return entry != nullptr && entry->joined;
}

void GroupTable::expect(std::uint64_t handle, bool waits) {
  if (GroupEntry* const entry = find(handle)) entry->expect(waits);
}

/// Makes the next turn read all sockets. A socket that is not read stays readable and would wake the thread
/// again at once.
void GroupTable::on_ready(bool) {
  for (const std::unique_ptr<GroupEntry>& entry : groups_) entry->next_poll = {};
}

Status GroupTable::leave(std::uint64_t handle) {
  GroupEntry* const entry = find(handle);
  if (entry == nullptr || entry->group->leaving()) return Status::bad_address;
  entry->group->leave();
  entry->close_by = parts_.environment.clock.now() + parts_.settings.linger;
  return Status::ok;
}

Status GroupTable::send(const protocol::SendOp& op) {
  GroupEntry* const entry = find(op.to);
  if (entry == nullptr || entry->group->leaving() || !entry->group->settings().role.sends)
    return Status::bad_address;
  const std::uint64_t token = protocol_.begin(op);
  if (token == 0) return Status::again;
  const bool kept = op.inject;
  const bool copied = kept || op.completion_level == protocol::CompletionLevel::inject;
  const group::Until until = op.completion_level == protocol::CompletionLevel::delivery
                                 ? group::Until::delivered
                             : copied ? group::Until::copied
                                      : group::Until::arrived;
  const auto post = [&] {
    entry->group->stream().post(protocol::GroupProtocol::shape_of(op), op.slices, op.length, kept, until,
                                token);
  };
  if (!enough_memory_for(post)) {
    protocol_.withdraw(token);
    return Status::no_memory;
  }
  if (!op.more) turn_now(*entry);
  return Status::ok;
}

void GroupTable::on_group_segment(protocol::Channel& channel, const wire::Segment& segment,
                                  ConstBytes payload) {
  Peer& peer = *static_cast<Peer*>(channel.owner);
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const auto& entry) {
    return entry->group->settings().key == segment.key;
  });
  bool known = false;
  if (found != groups_.end()) {
    GroupEntry& entry = **found;
    Member* member = entry.group->find(peer.name());
    const bool introduces =
        segment.kind == SegmentKind::group_join || segment.kind == SegmentKind::group_start;
    if (member == nullptr && introduces && !entry.group->leaving() &&
        may_join(*entry.group, peers_, channel)) {
      entry.meet(peer);
      member = entry.group->find(peer.name());
    }
    known = member != nullptr &&
            entry.group->on_segment(parts_.environment.clock.now(), *member, segment, payload);
  }
  if (known || !wants_answer(segment.kind)) return;
  messenger_.control().send(channel, {.kind = SegmentKind::group_end, .id = segment.id, .key = segment.key});
}

void GroupTable::on_carrier_left(protocol::Channel& channel) {
  for (const std::unique_ptr<GroupEntry>& entry : groups_) {
    if (entry->group->find(channel.name) == nullptr) continue;
    entry->group->meet(channel.name, channel.owner, nullptr);
    entry->unreached = true;
  }
}

void GroupTable::on_channel_failed(protocol::Channel& channel, Status status) {
  Peer& peer = *static_cast<Peer*>(channel.owner);
  for (const std::unique_ptr<GroupEntry>& entry : groups_) {
    Member* const member = entry->group->find(peer.name());
    if (member == nullptr || member->owner != &peer) continue;
    deliver(*entry, *member, kAllBodies);
    if (const auto incoming = entry->incoming.find(peer.name()); incoming != entry->incoming.end()) {
      protocol_.abort(incoming->second.assembly, status);
      entry->incoming.erase(incoming);
    }
    entry->group->lose(*member, status);
  }
}

/// Reads until the socket is empty, but at most kBurstsMax bursts. If frames may be left, sets
/// GroupEntry::unread, so that the group does not report them as missing.
std::size_t GroupTable::receive(Time now, GroupEntry& entry) {
  if (now < entry.next_poll) return 0;
  std::size_t arrivals = 0;
  std::array<link::InFrame, kBurst> frames;
  std::size_t bursts = 0;
  for (; bursts < kBurstsMax; ++bursts) {
    const std::size_t count = entry.socket->receive_burst(frames);
    for (const link::InFrame& frame : std::span(frames).first(count))
      arrivals += receive_frames(now, entry, frame);
    if (count < kBurst) break;
  }
  entry.note_poll(now, arrivals != 0, bursts == kBurstsMax);
  return arrivals;
}

/// Processes the frames of one arrival. Returns how many of them belong to the group.
std::size_t GroupTable::receive_frames(Time now, GroupEntry& entry, const link::InFrame& frame) {
  if (frame.from.to == parts_.name) return 0;
  const wire::Integrity integrity =
      parts_.link != nullptr ? parts_.link->integrity() : wire::Integrity::checksum;
  std::size_t arrivals = 0;
  for (link::ArrivalWalk walk(frame); !walk.done();) {
    wire::FrameView view;
    if (wire::admit(walk.datagram(), view, integrity) != wire::Refusal::none) {
      ++parts_.environment.counters.refused_malformed;
      walk.pass_datagram();
      continue;
    }
    ++parts_.environment.counters.frames_received;
    arrivals += receive_frame(now, entry, view, frame) ? 1 : 0;
    walk.pass(1, view.length);
  }
  return arrivals;
}

bool GroupTable::receive_frame(Time now, GroupEntry& entry, const wire::FrameView& view,
                               const link::InFrame& frame) {
  const SocketAddress& from = frame.from.to;
  if (view.kind == wire::FrameKind::group) {
    const Duration age =
        frame.arrived != kNever && frame.arrived < now ? now - frame.arrived : Duration::zero();
    if (entry.group->on_frame(now, view, from, age)) return true;
  } else if (view.kind == wire::FrameKind::group_announce) {
    const std::uint64_t key = view.sequence.value | std::uint64_t{view.transmission.value} << 32;
    if (key != entry.group->settings().key || entry.group->leaving()) return false;
    if (entry.group->find(from) != nullptr || !peers_.in_address_vector(from)) return false;
    entry.meet(peers_.find_or_add(from));
    return true;
  }
  ++parts_.environment.counters.refused_stale;
  ++parts_.environment.counters.refused_multicast;
  return false;
}

/// Opens carriers to members that have none. Opening a carrier can change the peer table. The change is safe
/// here, because nothing iterates over peers.
void GroupTable::reach_members(GroupEntry& entry) {
  if (!entry.unreached) return;
  std::vector<Member*> lost;
  bool later = false;
  entry.group->each([&](Member& member) {
    if (member.carrier != nullptr) return;
    Peer& peer = *static_cast<Peer*>(member.owner);
    const OpenResult opening = peer.channel.carrier != nullptr ? OpenResult::reached : reach_.open(peer);
    if (opening == OpenResult::reached) entry.meet(peer);
    if (opening == OpenResult::unreached) lost.push_back(&member);
    later |= opening == OpenResult::later;
  });
  entry.unreached = later;  // set last, so that the next turn tries again if memory runs out above
  for (Member* member : lost) entry.group->lose(*member, Status::unreachable);
}

bool GroupTable::deliver(GroupEntry& entry, Member& member, std::size_t bodies) {
  group::ReceiverStream* const stream = member.stream.get();
  if (stream == nullptr || stream->front().empty()) return false;
  GroupEntry::Incoming& incoming = entry.incoming[member.name];
  if (incoming.stream != stream->id()) protocol_.abort(incoming.assembly, Status::reset);
  incoming.stream = stream->id();
  protocol::Channel& channel = static_cast<Peer*>(member.owner)->channel;
  for (std::size_t i = 0; i < bodies; ++i) {
    const ConstBytes body = stream->front();
    if (body.empty()) return false;
    wire::Segment segment;
    const std::size_t header = wire::decode(body, segment);
    if (header == 0 || segment.length > body.size() - header) {
      ++parts_.environment.counters.refused_segment;
      stream->consume(body.size());
      entry.group->on_delivery(member);
      continue;
    }
    if (!protocol_.ready(channel, segment, entry.content)) return true;
    protocol_.arrive(channel, incoming.assembly, segment, body.subspan(header, segment.length),
                     entry.content);
    stream->consume(header + segment.length);
    entry.group->on_delivery(member);
  }
  return entry.unfinished = true;
}

/// Takes a turn of one group. If memory runs out, the turn ends early and a later turn continues. This
/// function must not throw, because its caller has already accepted an operation or read frames.
void GroupTable::turn(Time now, GroupEntry& entry) {
  if (enough_memory_for([&] { take_turn(now, entry); })) [[likely]]
    return;
  ++parts_.environment.counters.no_memory;
  entry.group->take_up();
}

void GroupTable::take_turn(Time now, GroupEntry& entry) {
  Group& group = *entry.group;
  reach_members(entry);
  entry.unfinished = false;
  group.news().deliver([&](Member& member) { return deliver(entry, member, kBodiesPerTurn); });
  holding_ = holding_ || group.news().any();
  group.run(now, entry.socket != nullptr ? parts_.link.get() : nullptr, entry.unread);
  group.take_posted([&](Member& member) {
    Peer& peer = *static_cast<Peer*>(member.owner);
    if (transport::Transport* const transport = peer.transport()) transport->mark(peer);
  });
  report(entry);
  if (group.news().take_ends() && !entry.incoming.empty()) entry.drop_ended_streams(protocol_);
}

/// Takes a turn of one group outside the engine's turns, and sends at once what the turn has posted.
void GroupTable::turn_now(GroupEntry& entry) {
  const Time now = parts_.environment.clock.now();
  turn(now, entry);
  for (transport::Transport* const each : reach_.transports()) each->flush();
}

/// Reports the results of a turn: completed messages, lost members, and the beginning of the membership. If
/// reporting throws, the remaining results are reported in a later turn.
void GroupTable::report(GroupEntry& entry) {
  Group& group = *entry.group;
  for (auto& finished = group.stream().finished(); !finished.empty(); finished.pop_front()) {
    protocol_.finish(finished.front().token, finished.front().status, finished.front().culprit);
  }
  const protocol::EndpointBindings& bindings = messenger_.bindings();
  Log& log = parts_.environment.log;
  for (; !group.events().empty(); group.events().pop_front()) {
    const GroupEvent& event = group.events().front();
    const std::string address = group.settings().path.to.text();
    const std::string name = event.member.text();
    switch (event.kind) {
      case GroupEvent::Kind::left:
        log.info("multicast group %s: member %s has left", address.c_str(), name.c_str());
        break;
      case GroupEvent::Kind::unicast:
        log.info(
            "multicast group %s: multicast does not reach member %s, so messages to this member are sent by "
            "unicast (does a switch or router between the two nodes filter multicast?)",
            address.c_str(), name.c_str());
        break;
      case GroupEvent::Kind::expelled:
      case GroupEvent::Kind::removed:
        log.warn(
            event.kind == GroupEvent::Kind::removed
                ? "multicast group %s: member %s is removed because it did not answer for "
                  "FI_CLUSTER_PEER_TIMEOUT (it can join again)"
                : "multicast group %s: member %s has removed this endpoint, because this endpoint did not "
                  "answer in time (close the group and join it again)",
            address.c_str(), name.c_str());
        if (bindings.losses != nullptr) {
          bindings.losses->peer_lost(peers_.handle_of(peers_.find_or_add(event.member).channel), event.member,
                                     Status::stuck);
        }
        break;
    }
  }
  if (entry.joined || group.leaving() || !group.complete()) return;
  const bool of_application = entry.content == protocol::GroupProtocol::Content::application;
  if (of_application && bindings.groups != nullptr) bindings.groups->group_joined(entry.context);
  entry.joined = true;
}

bool GroupTable::close(Time now, GroupEntry& entry) {
  const bool closed = enough_memory_for([&] {
    entry.group->stream().abandon();
    entry.drop_streams(protocol_, Status::canceled);
    report(entry);
    if (entry.socket != nullptr) waiter_.unwatch(entry.socket->descriptor());
  });
  if (closed) return true;
  ++parts_.environment.counters.no_memory;
  entry.close_by = now + kRetryInterval;
  return false;
}

void GroupTable::deliver_held() {
  holding_ = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i]->group->news().any()) turn_now(*groups_[i]);
  }
}

bool GroupTable::run() {
  const Time now = parts_.environment.clock.now();
  holding_ = false;  // the turns of the groups set it again
  std::size_t arrivals = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    GroupEntry& entry = *groups_[i];
    if (entry.socket != nullptr) arrivals += receive(now, entry);
    if (entry.due(now)) turn(now, entry);
  }
  std::erase_if(groups_, [&](const std::unique_ptr<GroupEntry>& entry) {
    return (entry->group->left() || now >= entry->close_by) && close(now, *entry);
  });
  return arrivals != 0;
}

Time GroupTable::deadline() const {
  Time first = kNever;
  for (const std::unique_ptr<GroupEntry>& entry : groups_) {
    if (entry->unfinished) return Time::min();
    first = std::min({first, entry->group->deadline(), entry->close_by});
  }
  return first;
}

bool GroupTable::quiescent() const {
  return std::all_of(groups_.begin(), groups_.end(), [](const std::unique_ptr<GroupEntry>& entry) {
    return entry->group->stream().drained() && !entry->group->leaving();
  });
}

}  // namespace cluster::engine
