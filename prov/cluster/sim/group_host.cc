#include "sim/group_host.h"

#include <algorithm>
#include <utility>

#include "sim/failure.h"

namespace cluster::sim {
namespace {

constexpr std::uint64_t kKey = 0x1122334455667788;
/// This bit is set in the tokens of messages that were posted with Until::delivered.
constexpr std::uint64_t kDelivered = std::uint64_t{1} << 62;

group::GroupSettings settings_of(const GroupHostSettings& host) {
  group::GroupSettings settings{.key = kKey, .path = {.to = GroupSocket::group()}, .role = host.role};
  settings.roster = host.roster;
  settings.body_max = host.body_max;
  settings.incarnation = host.membership;
  settings.silence_max = host.silence_max;
  return settings;
}

}  // namespace

GroupHost::GroupHost(const GroupHostSettings& settings, EventQueue& events, GroupNetwork& network,
                     GroupOracle& oracle, std::uint64_t seed)
    : settings_(settings),
      events_(events),
      network_(network),
      oracle_(oracle),
      random_(SeededRandom::stream(seed, 'H', settings.membership)),
      socket_(settings.name, settings.credentials, events, network,
              SeededRandom::stream(seed, 'S', settings.membership)),
      group_(settings_of(settings), settings.membership, random_) {
  for (const SocketAddress& other : settings_.roster)
    group_.meet(other, nullptr, &network_.pipe(settings_.name, other));
  handle_event(0);
}

void GroupHost::post(std::size_t size, group::Until until) {
  const MessageNumber number = oracle_.posted(settings_.membership, size);
  std::vector<std::byte> content(size);
  fill_content(number, content);
  const group::MessageToken token = number | (until == group::Until::delivered ? kDelivered : 0);
  std::vector<std::byte>& kept = unfinished_[token] = std::move(content);
  const ConstBytes bytes(kept);
  const AllocationMeter::Scope scope(settings_.memory);
  group_.stream().post({}, {&bytes, 1}, size, random_.chance(kMillion / 4), until, token);
  turn();
}

void GroupHost::leave() {
  group_.leave();
  oracle_.left(settings_.membership);
  turn();
}

void GroupHost::freeze(Time until) {
  frozen_until_ = until;
  events_.plan(until, *this, 0);
}

void GroupHost::hold(Time until) {
  held_until_ = until;
  events_.plan(until, *this, 0);
}

void GroupHost::lose(const SocketAddress& name, Status why) {
  incoming_.erase(name);
  if (group::Member* const member = group_.find(name)) group_.lose(*member, why);
  turn();
}

void GroupHost::frame_arrived(const SocketAddress& from, const std::vector<std::byte>& bytes) {
  if (frozen()) return backlog_.push_back({true, from, bytes});
  wire::FrameView view;
  if (wire::admit(socket_.open(from, bytes), view, socket_.integrity()) != wire::Refusal::none) return;
  if (view.kind == wire::FrameKind::group) {
    group_.on_frame(events_.now(), view, from, Duration::zero());
  } else if (view.kind == wire::FrameKind::group_announce && !group_.leaving() &&
             group_.find(from) == nullptr) {
    group_.meet(from, nullptr, &network_.pipe(settings_.name, from));
  }
  turn();
}

void GroupHost::segment_arrived(const SocketAddress& from, const std::vector<std::byte>& bytes) {
  if (frozen()) return backlog_.push_back({false, from, bytes});
  wire::Segment segment;
  const std::size_t header = wire::decode(bytes, segment);
  if (header == 0) throw SafetyFailure("a segment that cannot be decoded");
  group::Member* member = group_.find(from);
  const bool introduces =
      segment.kind == wire::SegmentKind::group_join || segment.kind == wire::SegmentKind::group_start;
  if (member == nullptr && introduces && !group_.leaving()) {
    member = &group_.meet(from, nullptr, &network_.pipe(settings_.name, from));
  }
  const bool known = member != nullptr &&
                     group_.on_segment(events_.now(), *member, segment, ConstBytes(bytes).subspan(header));
  const bool answered = segment.kind != wire::SegmentKind::group_join &&
                        segment.kind != wire::SegmentKind::group_leave &&
                        segment.kind != wire::SegmentKind::group_end;
  if (!known && answered) {
    const wire::Segment end{.kind = wire::SegmentKind::group_end, .id = segment.id, .key = kKey};
    carrier::post_copy(network_.pipe(settings_.name, from), end, {});
  }
  turn();
}

void GroupHost::take_segment(group::Member& member, Incoming& incoming, const wire::Segment& segment,
                             ConstBytes payload) {
  const bool begins = segment.kind != wire::SegmentKind::eager_next;
  if (begins == incoming.open) throw SafetyFailure("a part of a message where none belongs");
  if (begins) {
    incoming.open = true;
    incoming.bytes.clear();
    incoming.total = segment.kind == wire::SegmentKind::eager ? payload.size() : segment.total;
  }
  incoming.bytes.insert(incoming.bytes.end(), payload.begin(), payload.end());
  if (incoming.bytes.size() < incoming.total) return;
  incoming.open = false;
  oracle_.taken(settings_.membership, member.stream->id(), incoming.bytes);
}

void GroupHost::review(const group::Member& member) {
  const group::ReceiverStream* const stream = member.stream.get();
  if (stream == nullptr) return;
  if (stream->arrived() - stream->delivered() > group::kStreamWindow)
    throw SafetyFailure("more is kept than the window");
  oracle_.met(settings_.membership, stream->id());
}

/// Delivers what has come from a member. Returns true if something is left.
bool GroupHost::deliver(group::Member& member) {
  group::ReceiverStream* const stream = member.stream.get();
  if (stream == nullptr) return false;
  Incoming& incoming = incoming_[member.name];
  if (incoming.stream != stream->id()) incoming = {.stream = stream->id(), .bytes = {}};
  while (events_.now() >= held_until_ && !stream->front().empty()) {
    const ConstBytes body = stream->front();
    wire::Segment segment;
    const std::size_t header = wire::decode(body, segment);
    if (header == 0 || segment.length > body.size() - header)
      throw SafetyFailure("a body that cannot be decoded");
    take_segment(member, incoming, segment, body.subspan(header, segment.length));
    stream->consume(header + segment.length);
    group_.on_delivery(member);
  }
  return !stream->front().empty();
}

/// Handles the frames and segments that came while the host was frozen, and then what is due.
void GroupHost::handle_event(std::uint64_t) {
  if (frozen()) return;
  wake_at_ = kNever;
  for (const Waiting& waiting : std::exchange(backlog_, {})) {
    waiting.frame ? frame_arrived(waiting.from, waiting.bytes) : segment_arrived(waiting.from, waiting.bytes);
  }
  turn();
}

void GroupHost::turn() {
  if (frozen()) return;
  const AllocationMeter::Scope scope(settings_.memory);
  if (!group_.leaving()) {
    if (settings_.judged) group_.each([this](const group::Member& member) { review(member); });
    group_.news().deliver([this](group::Member& member) { return deliver(member); });
    if (settings_.judged)
      group_.each([this](const group::Member& member) {
        const bool waits = member.stream != nullptr && !member.stream->front().empty();
        if (waits && events_.now() >= held_until_)
          throw SafetyFailure("what has come from a member of a group is no news");
      });
  }
  // Segments that are posted here travel at once.
  if (group_.run(events_.now(), &socket_.link())) group_.take_posted([](group::Member&) {});
  note_events();
  const Time due = std::max(group_.deadline(), events_.now() + 1us);
  if (group_.deadline() == kNever || due >= wake_at_) return;
  wake_at_ = due;
  events_.plan(due, *this, 0);
}

void GroupHost::note_events() {
  for (; !group_.events().empty(); group_.events().pop_front()) {
    const group::GroupEvent& event = group_.events().front();
    const group::Member* const member = group_.find(event.member);
    if (member == nullptr) continue;
    if (event.kind == group::GroupEvent::Kind::removed)
      oracle_.apart(member->stream_id, settings_.membership);
    if (event.kind == group::GroupEvent::Kind::expelled)
      oracle_.apart(settings_.membership, member->stream_id);
  }
  for (auto& finished = group_.stream().finished(); !finished.empty(); finished.pop_front()) {
    const group::FinishedMessage& message = finished.front();
    if (unfinished_.erase(message.token) == 0) throw SafetyFailure("a message is finished twice");
    if (message.status != Status::ok) {
      ++failed_;
    } else if ((message.token & kDelivered) != 0) {
      oracle_.delivered(settings_.membership, message.token & ~kDelivered);
    }
  }
}

}  // namespace cluster::sim
