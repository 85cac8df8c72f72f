// Remote writes. Small ones travel at once, in the order of messages; large ones are announced and
// pulled like messages, into the region they name. Either way the target answers every one of them,
// since only it can tell whether the memory may be written: complete means the bytes are there.
//
// A message behind an announced write waits until that has landed, so "the send is seen after the
// write" holds at any size. Other operations wait likewise if the endpoint was promised so (Ordering).
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {

RmaGroup* Messenger::group_for(const RmaOp& order) {
  if (order.remote.size() <= 1) return nullptr;
  RmaGroup* group = groups_.acquire();
  group->context = order.context;
  group->left = order.remote.size();
  for (const RmaIov& remote : order.remote) group->unasked += remote.length > 0;
  group->report = order.report;
  return group;
}

Status Messenger::put(Channel& channel, const WriteOp& order) {
  if (tx_size_left() < order.remote.size()) return Status::again;
  RmaGroup* group = group_for(order);
  std::size_t base = 0;
  for (const RmaIov& remote : order.remote) {
    put_one(channel, order, remote, base, group);
    base += remote.length;
  }
  counters_.bytes_sent += order.length;
  if (channel.has_work()) mark_busy(channel);
  return Status::ok;
}

void Messenger::put_one(Channel& channel, const WriteOp& order, const RmaIov& remote, std::size_t base,
                        RmaGroup* group) {
  SendRequest& request = *sends_.acquire();
  request.verb = SendRequest::Verb::put;
  request.channel = &channel;
  request.context = order.context;
  request.slices.add(order.slices);
  request.base = base;
  request.length = remote.length;
  request.remote = remote;
  request.data = order.data;
  request.more = &remote != &order.remote.back();
  request.continues = &remote != &order.remote.front();
  request.has_data = order.has_data && !request.more;
  request.report = order.report;
  request.fence = order.fence;
  request.group = group;
  request.completion_level = CompletionLevel::delivery;
  channel.sends.push_back(request);
  channel.waiting.push_back(request);
  const std::uint32_t id = request.id;
  if (channel.waiting.front() == &request) advance(request);
  // Queued or announced: its bytes go out later.
  if (order.inject && sends_.find(id) == &request && request.state != SendRequest::State::posted) {
    keep_injected(request, {order.slices, base, remote.length});
  }
}

bool Messenger::advance_put(SendRequest& request) {
  Channel& channel = *request.channel;
  const bool failed_before = request.group != nullptr && request.group->status != Status::ok;
  if (failed_before && !request.more && request.posted == 0) {
    // The last range tells of a whole write or does not come; of one that has begun the target waits for the
    // rest.
    complete(request, request.group->status);
    return true;
  }
  Carrier& carrier = *channel.carrier;
  wire::Segment segment;
  segment.flags = static_cast<std::uint8_t>((request.has_data ? wire::segment_flag::kData : 0) |
                                            (request.more ? wire::segment_flag::kMore : 0) |
                                            (request.continues ? wire::segment_flag::kContinues : 0));
  segment.id = request.id;
  segment.offset = request.remote.address;
  segment.key = request.remote.key;
  segment.total = request.length;
  segment.data = request.data;
  if (request.posted == 0 && !channel.allows_eager(request.length)) {
    segment.kind = wire::SegmentKind::put_announce;
    if (!carrier.post(segment, {}, PayloadMode::copy, 0)) return false;
    ++channel.puts_announced;
    request.state = SendRequest::State::announced;
    channel.waiting.remove(request);
    return true;
  }
  segment.kind = wire::SegmentKind::put;
  for (bool first = request.posted == 0; first || request.posted < request.length; first = false) {
    if (!first) {
      segment = {};
      segment.kind = wire::SegmentKind::put_next;
    }
    const std::size_t left = request.length - request.posted;
    const std::size_t part = next_fragment(left, carrier, segment);
    if (part == 0 && left > 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Gather payload{request.payload(), request.base + request.posted, part};
    if (!carrier.post(segment, payload, PayloadMode::copy, 0)) return false;
    request.posted += part;
  }
  request.state = SendRequest::State::posted;
  channel.waiting.remove(request);
  return true;
}

/// How long a peer's write is with this range of it, which comes behind the others.
std::uint64_t Messenger::whole_length(Channel& channel, const wire::Segment& range) {
  const std::uint64_t whole = (range.continues() ? channel.ranges_length : 0) + range.total;
  channel.ranges_length = range.more() ? whole : 0;
  return whole;
}

void Messenger::on_put(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  Channel::Landing& landing = channel.landing;
  if (landing.open || payload.size() > segment.total) return refuse();
  landing = {segment, 0, whole_length(channel, segment), true, false};
  landing.allowed = bindings_.regions != nullptr &&
                    bindings_.regions->with(segment.key, segment.offset, segment.total, Access::write,
                                            [](std::byte*, const MemoryRegion&) {});
  write_landing(channel, payload);
}

void Messenger::on_put_next(Channel& channel, ConstBytes payload) {
  const Channel::Landing& landing = channel.landing;
  if (!landing.open || payload.size() > landing.first.total - landing.arrived) return refuse();
  write_landing(channel, payload);
}

void Messenger::write_landing(Channel& channel, ConstBytes payload) {
  Channel::Landing& landing = channel.landing;
  if (landing.allowed && !payload.empty()) {
    // Asked again for every part: the region may be closed meanwhile.
    landing.allowed = bindings_.regions->with(
        landing.first.key, landing.first.offset + landing.arrived, payload.size(), Access::write,
        [&](std::byte* target, const MemoryRegion&) { std::memcpy(target, payload.data(), payload.size()); });
  }
  landing.arrived += payload.size();
  if (landing.arrived < landing.first.total) return;
  landing.open = false;
  if (!landing.allowed) return refuse_put(channel, landing.first.id);
  landed(channel, landing.first, landing.whole);
  confirm(channel, landing.first.id);
}

void Messenger::on_put_announce(Channel& channel, const wire::Segment& segment) {
  const std::uint64_t whole = whole_length(channel, segment);
  const bool allowed = bindings_.regions != nullptr &&
                       bindings_.regions->with(segment.key, segment.offset, segment.total, Access::write,
                                               [](std::byte*, const MemoryRegion&) {});
  const bool welcome = allowed && segment.total > 0 && channel.lands < kResponsesMax;
  RecvRequest* receive = welcome ? receives_.acquire() : nullptr;
  if (receive == nullptr) return refuse_put(channel, segment.id);
  ++channel.lands;
  receive->verb = RecvRequest::Verb::land;
  receive->channel = &channel;
  receive->remote = {segment.offset, segment.key, whole};
  receive->last = !segment.more();
  receive->data = segment.data;
  receive->has_data = segment.has_data();
  receive->sender_id = segment.id;
  receive->total = receive->capacity = segment.total;
  start_pulling(*receive);
}

/// All bytes of a remote write, or of one range of it, are in place: whoever asked to know of the write is
/// told with its last range.
void Messenger::landed(const Channel& channel, const wire::Segment& first, std::uint64_t whole) {
  counters_.bytes_received += first.total;
  if (first.more()) return;
  if (bindings_.remote_write_counter != nullptr) bindings_.remote_write_counter->count(Status::ok);
  bindings_.regions->with(first.key, first.offset, first.total, Access::write,
                          [](std::byte*, const MemoryRegion& region) {
                            if (region.writes != nullptr) region.writes->count(Status::ok);
                          });
  if (!first.has_data() || bindings_.receives == nullptr) return;
  Completion completion;
  completion.kind = Completion::Kind::remote_write;
  completion.has_data = true;
  completion.data = first.data;
  completion.length = whole;
  if (bindings_.want_source) completion.source = directory_.handle_of(channel);
  bindings_.receives->push(completion);
}

void Messenger::refuse_put(Channel& channel, std::uint32_t id) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::failed;
  segment.id = id;
  segment.total = static_cast<std::uint64_t>(Status::access);
  say(channel, segment);
}

void Messenger::on_failed(Channel& channel, const wire::Segment& segment) {
  SendRequest* request = sends_.find(segment.id);
  const bool known = request != nullptr && request->channel == &channel && !request->done;
  if (known && request->verb == SendRequest::Verb::atomic && request->tokens > 0) {
    return answered(*request, Status::access);
  }
  const bool lawful =
      known && request->verb == SendRequest::Verb::put && request->state != SendRequest::State::queued;
  if (!lawful) return refuse();
  request->status = Status::access;
  finish(*request);
}

}  // namespace cluster::protocol
