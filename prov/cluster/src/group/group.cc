#include "group/group.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "wire/frame.h"

namespace cluster::group {

using wire::Segment;
using wire::SegmentKind;

namespace {

constexpr Duration kPostRetry = 100us;  ///< until the next attempt after a carrier had no space for a segment
constexpr Duration kAgeUnit = 1024ns;   ///< unit of the age in group_status

std::uint32_t age_units(Duration age) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(age / kAgeUnit, 0, UINT32_MAX));
}

bool post_to(Member& member, const Segment& segment) {
  if (member.carrier == nullptr || !carrier::post_copy(*member.carrier, segment, {})) return false;
  member.posted = true;
  return true;
}

void report_gaps(Time now, Member& member, std::uint64_t key) {
  std::array<ReceiverStream::Gap, kNakRanges> gaps;
  const std::size_t count = member.stream->take_gaps(now, gaps);
  for (const ReceiverStream::Gap& gap : std::span(gaps).first(count)) {
    const Segment nak{.kind = SegmentKind::group_nak,
                      .id = member.stream->id(),
                      .offset = gap.first,
                      .total = gap.count,
                      .key = key};
    if (!post_to(member, nak)) return;
  }
}

void report_status(Time now, Member& member, std::uint64_t key) {
  const ReceiverStream::StreamStatus status = member.stream->status(now);
  const Segment report{.kind = SegmentKind::group_status,
                       .flags = status.by_multicast ? wire::segment_flag::kMore : std::uint8_t{0},
                       .id = member.stream->id(),
                       .peer_id = age_units(status.age),
                       .offset = status.arrived,
                       .total = status.window_end,
                       .key = key};
  if (post_to(member, report)) member.stream->status_sent();
}

/// Returns true once both sides have announced their roles and the starts of the streams between them.
bool met(const Member& member, const Role& own) {
  if (!member.role || member.join_due) return false;
  const bool hears = own.receives && member.role->sends;
  const bool is_heard = own.sends && member.role->receives;
  return (!hears || member.stream != nullptr) && (!is_heard || (member.started && !member.start_due));
}

/// Sends the member this side's role and the start of this side's stream, if they are due. Returns false if
/// one of the two is still due, for example because the carrier had no space.
bool introduce(Member& member, const GroupSettings& own, std::uint32_t stream, bool leaving) {
  if (member.join_due && !leaving) {
    const Segment join{.kind = SegmentKind::group_join,
                       .id = stream,
                       .offset = own.incarnation,
                       .total = own.role.bits(),
                       .key = own.key};
    member.join_due = !post_to(member, join);
  }
  if (member.start_due) {
    const Segment start{.kind = SegmentKind::group_start,
                        .id = stream,
                        .offset = member.start,
                        .total = own.incarnation,
                        .key = own.key};
    member.start_due = !post_to(member, start);
  }
  return !member.join_due && !member.start_due;
}

}  // namespace

void Announcer::run(Time now, link::Link& link, const link::Path& group, std::size_t members) {
  if (now < next_) return;
  std::array<std::byte, sizeof(wire::FrameHeader)> bytes;
  wire::FrameHeader& header = wire::header_at(bytes.data());
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::group_announce);
  header.sequence = static_cast<std::uint32_t>(key_);
  header.transmission = static_cast<std::uint32_t>(key_ >> 32);
  const ConstBytes whole(bytes);
  wire::encode_frame(header, {&whole, 1}, link.integrity());
  link::send_frame(link, whole, group);
  const bool first = ++sent_ < kAnnouncesFirst;
  next_ = now + (first ? kAnnounceFirst : kAnnounceInterval * static_cast<std::int64_t>(1 + members / 32));
}

Group::Group(GroupSettings settings, std::uint32_t stream_id, Random& random)
    : settings_(std::move(settings)),
      random_(random),
      stream_({stream_id, settings_.key, settings_.incarnation}, settings_.body_max, settings_.outage),
      spare_bodies_(settings_.body_max),
      announcer_(settings_.key) {}

Member* Group::find(const SocketAddress& name) {
  const auto found = members_.find(name);
  return found == members_.end() ? nullptr : found->second.get();
}

Member& Group::meet(const SocketAddress& name, void* owner, carrier::Carrier* carrier) {
  auto place = members_.find(name);
  if (place == members_.end()) {
    news_.reserve(members_.size() + 1);
    touched_.reserve(members_.size() + 1);
    posted_.reserve(members_.size() + 1);
    auto fresh = std::make_unique<Member>();
    fresh->name = name;
    place = members_.emplace(name, std::move(fresh)).first;
  }
  Member& member = *place->second;
  member.owner = owner;
  member.carrier = carrier;
  add_once(touched_, member);
  return member;
}

void Group::lose(Member& member, Status why) {
  stop_sending_to(member, why);
  next_service_ = {};
  forget(member);
  news_.note_end();
  members_.erase(SocketAddress(member.name));
}

void Group::forget(const Member& member) {
  std::erase(touched_, &member);
  std::erase(posted_, &member);
  news_.forget(member);
}

bool Group::complete() const {
  if (settings_.roster.empty()) {
    return announcer_.settled() && std::all_of(members_.begin(), members_.end(), [this](const auto& entry) {
             return entry.second->gone || entry.second->absent || met(*entry.second, settings_.role);
           });
  }
  return std::all_of(settings_.roster.begin(), settings_.roster.end(), [this](const SocketAddress& name) {
    const auto found = members_.find(name);
    return found != members_.end() && met(*found->second, settings_.role);
  });
}

/// Removes the member from the listeners of this side's stream. `why`: Status::ok, or the status with which a
/// message fails if the member has not received it.
void Group::stop_sending_to(Member& member, Status why) {
  stream_.remove(member, why);
  static_cast<Listener&>(member) = {.name = member.name, .carrier = member.carrier, .posted = member.posted};
}

void Group::on_join(Member& member, const Segment& segment) {
  if (member.role && segment.offset <= member.incarnation) return;  // a late copy of an earlier join
  // After a new join, the member has no state from its earlier membership.
  if (member.role) stop_sending_to(member, Status::reset);
  if (member.role || member.absent) member.join_due = true;
  member.absent = false;
  member.role = Role::of(segment.total);
  member.incarnation = segment.offset;
  member.stream_id = segment.id;
  if (member.stream != nullptr && member.stream->id() != member.stream_id) {
    member.stream.reset();
    news_.note_end();
  }
  member.stream_end = Member::kNoEnd;
  member.gone = false;
  if (settings_.role.sends && member.role->receives && !leaving_) stream_.add(member);
}

bool Group::on_start(Member& member, const Segment& segment) {
  if (leaving_ || !settings_.role.receives) return false;
  const bool known = member.stream != nullptr && member.stream->id() == segment.id;
  const bool late = segment.total < member.incarnation;
  if (!known && !late) {
    member.stream = std::make_unique<ReceiverStream>(segment.id, segment.offset, random_, spare_bodies_);
    news_.note_end();
    member.stream_membership = segment.total;
  }
  return true;
}

/// Processes a listener's report about the stream of this side. Returns false if the member is not a
/// listener.
bool Group::on_report(Time now, Member& member, const Segment& segment) {
  if (segment.id != stream_.id() || !member.started) return false;
  if (segment.kind == SegmentKind::group_nak) {
    stream_.on_nak(now, member, segment.offset, segment.total);
    return true;
  }
  const bool by_unicast = member.by_unicast;
  stream_.on_status(now, member, segment.offset, segment.total, segment.peer_id * kAgeUnit, segment.more());
  if (!by_unicast && member.by_unicast) events_.push_back(GroupEvent{GroupEvent::Kind::unicast, member.name});
  return true;
}

void Group::on_end(Member& member, const Segment& segment) {
  if (segment.id == stream_.id()) {
    if (member.started) {
      stop_sending_to(member, Status::ok);  // the member has left the group
    } else if (!member.role) {
      member.absent = true;
    } else {
      // The member's own join arrived first, and then its refusal of this side's join. This side must send
      // its join again, because the member has joined.
      member.join_due = true;
    }
  } else if (member.stream != nullptr && member.stream->id() == segment.id &&
             member.stream_end == Member::kNoEnd) {
    // While this side is leaving, it sends group_end, and the member stops sending to it. After that, the
    // member answers the reports of this side with group_end. So a group_end that arrives now does not mean
    // that the member has expelled this side.
    if (!leaving_) events_.push_back(GroupEvent{GroupEvent::Kind::expelled, member.name});
    member.stream_end = member.stream->arrived();
  }
}

bool Group::on_segment(Time now, Member& member, const Segment& segment, ConstBytes payload) {
  add_once(touched_, member);
  ReceiverStream* const stream =
      member.stream != nullptr && member.stream->id() == segment.id ? member.stream.get() : nullptr;
  switch (segment.kind) {
    case SegmentKind::group_join: on_join(member, segment); return true;
    case SegmentKind::group_start: return on_start(member, segment);
    case SegmentKind::group_status:
    case SegmentKind::group_nak: return on_report(now, member, segment);
    case SegmentKind::group_ask:
      // Without a stream, there is nothing to report, because the member's group_start has not arrived yet.
      if (stream != nullptr) stream->asked(now, segment.offset, members_.size() + 1);
      return !leaving_;
    case SegmentKind::group_repair:
      if (stream == nullptr) return !leaving_;
      if (const ConstBytes body = member.repair.add(segment, payload); !body.empty()) {
        stream->receive(now,
                        {segment.offset, segment.offset + 1, body, false, ReceiverStream::Route::unicast, {}},
                        members_.size() + 1);
        news_.note(member);
      }
      return !leaving_;
    case SegmentKind::group_leave:
      if (member.stream_id != segment.id || member.gone) return true;
      events_.push_back(GroupEvent{GroupEvent::Kind::left, member.name});
      stop_sending_to(member, Status::ok);
      member.stream_end = segment.offset;
      member.gone = true;
      return true;
    default: on_end(member, segment); return true;
  }
}

bool Group::on_frame(Time now, const wire::FrameView& view, const SocketAddress& from, Duration age) {
  if (view.transmission.value != static_cast<std::uint32_t>(settings_.key) || leaving_) return false;
  Member* const member = find(from);
  if (member == nullptr || member->stream == nullptr || member->stream->id() != view.session) return false;
  // Zero means that the sender is of an older version, which does not send its membership.
  const std::uint32_t membership = view.largest_acked.value;
  if (membership != 0 && membership != static_cast<std::uint32_t>(member->stream_membership)) return false;
  ReceiverStream& stream = *member->stream;
  const std::uint64_t sequence = stream.widen(view.sequence.value);
  stream.receive(now,
                 {sequence, stream.widen(view.ack.value), view.segments, view.ack_now(),
                  ReceiverStream::Route::multicast, age},
                 members_.size() + 1);
  if (stream.deadline() <= now) {
    add_once(touched_, *member);
  } else {
    next_service_ = std::min(next_service_, stream.deadline());
  }
  news_.note(*member);
  return true;
}

/// Sends a member the segments that are due, and notes the time when the next segments are due. Returns true
/// if the member has left or its stream has ended.
bool Group::serve(Time now, Member& member, bool unread) {
  if (!introduce(member, settings_, stream_.id(), leaving_))
    next_service_ = std::min(next_service_, now + kPostRetry);
  if (leaving_ && stream_.drained() && !member.gone) {
    const Segment leave{
        .kind = SegmentKind::group_leave, .id = stream_.id(), .offset = stream_.next(), .key = settings_.key};
    if (post_to(member, leave)) {
      member.stream.reset();
      news_.note_end();
      member.gone = true;
    }
  }
  if (member.stream != nullptr && member.stream_end == Member::kNoEnd) {
    if (member.stream->status_due(now)) report_status(now, member, settings_.key);
    if (member.stream->nak_due(now) && !unread) report_gaps(now, member, settings_.key);
    next_service_ = std::min(next_service_, member.stream->deadline());
  }
  if (member.silent > settings_.silence_max) {
    post_to(member, {.kind = SegmentKind::group_end, .id = stream_.id(), .key = settings_.key});
    events_.push_back(GroupEvent{GroupEvent::Kind::removed, member.name});
    stop_sending_to(member, Status::stuck);
  }
  if (member.posted) add_once(posted_, member);
  return member.gone || member.stream_end != Member::kNoEnd;
}

/// Forgets streams that have ended and members that have left, once all their messages are delivered.
void Group::forget_ended() {
  for (auto entry = members_.begin(); entry != members_.end();) {
    Member& member = *entry->second;
    const bool ended = member.gone || member.stream_end != Member::kNoEnd;
    ReceiverStream* const stream = member.stream.get();
    if (ended && stream != nullptr && stream->delivered() >= std::min(member.stream_end, stream->arrived())) {
      member.stream.reset();
      news_.note_end();
    }
    const bool over = member.gone && member.stream == nullptr;
    if (over && !member.posted) {
      stop_sending_to(member, Status::ok);
      forget(member);
      entry = members_.erase(entry);
      continue;
    }
    if (over) next_service_ = {};
    ++entry;
  }
}

bool Group::run(Time now, link::Link* link, bool unread) {
  if (settings_.roster.empty() && link != nullptr && !leaving_)
    announcer_.run(now, *link, settings_.path, members_.size() + 1);
  const bool all_due = now >= next_service_ || leaving_;
  const bool due = all_due || !touched_.empty();
  // The stream has something to transmit only after a report of a member, or at the stream's deadline.
  const bool transmits = settings_.role.sends && (due || now >= stream_.deadline());
  const bool for_all = transmits && stream_.transmit(now, link, settings_.path);
  const bool all = all_due || for_all;
  if (!all && touched_.empty()) return false;
  bool ended = false;
  const auto serve_one = [&](Member& member) { ended |= serve(now, member, unread); };
  if (all) {
    next_service_ = kNever;
    each(serve_one);
    if (leaving_) next_service_ = std::min(next_service_, now + kPostRetry);
  } else {
    for (Member* const member : touched_) serve_one(*member);
  }
  touched_.clear();
  if (ended) forget_ended();
  return true;
}

Time Group::deadline() const {
  const bool announces = settings_.roster.empty() && !leaving_;
  if (!touched_.empty()) return {};
  return std::min({next_service_, stream_.deadline(), announces ? announcer_.deadline() : kNever});
}

}  // namespace cluster::group
