// Remote reads. The reader asks for as much at a time as its budget allows, exactly as it pulls
// messages; the target streams out of the region, copying each part under the region's lock so that
// a region that is closed is never read again.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {

Status Messenger::get(Channel& channel, const ReadOp& order) {
  if (channel.reads + order.remote.size() > kReadsMax || tx_size_left() < order.remote.size() ||
      !receives_.has_room(order.remote.size())) {
    return Status::again;
  }
  RmaGroup* group = group_for(order);
  std::size_t base = 0;
  for (const RmaIov& remote : order.remote) {
    get_one(channel, order, remote, base, group);
    base += remote.length;
  }
  if (channel.has_work()) mark_busy(channel);
  return Status::ok;
}

void Messenger::get_one(Channel& channel, const ReadOp& order, const RmaIov& remote, std::size_t base,
                        RmaGroup* group) {
  RecvRequest& receive = *receives_.acquire();
  receive.verb = RecvRequest::Verb::get;
  receive.channel = &channel;
  receive.context = order.context;
  receive.slices.add(order.slices);
  receive.base = base;
  receive.remote = remote;
  receive.group = group;
  receive.report = order.report;
  receive.total = receive.capacity = remote.length;
  const bool at_once =
      channel.waiting.empty() && !order.fence && !held_up(channel, SendRequest::Verb::launch);
  if (at_once) return start_pulling(receive);
  // What was asked for before goes first, so that a read behind a write sees what it wrote.
  SendRequest& turn = *sends_.acquire();
  turn.verb = SendRequest::Verb::launch;
  turn.channel = &channel;
  turn.receiver_id = receive.id;
  turn.fence = order.fence;
  channel.sends.push_back(turn);
  channel.waiting.push_back(turn);
  if (channel.waiting.front() == &turn) advance(turn);
}

void Messenger::on_get(Channel& channel, const wire::Segment& segment) {
  bool posted = false;
  wire::Segment answer;
  answer.kind = wire::SegmentKind::bulk;
  answer.peer_id = segment.peer_id;
  answer.offset = segment.data;
  const bool at_once = channel.carrier != nullptr && !channel.has_work() &&
                       segment.total <= channel.carrier->payload_max(answer);
  if (at_once) answer.length = static_cast<std::uint32_t>(segment.total);
  const auto look = [&](std::byte* source, const MemoryRegion&) {
    if (!at_once) return;
    const ConstBytes slice(source, segment.total);
    posted = channel.carrier->post(answer, {{&slice, 1}, 0, slice.size()}, PayloadMode::copy, 0);
  };
  const bool allowed =
      bindings_.regions != nullptr && segment.total > 0 && channel.serves < kResponsesMax &&
      bindings_.regions->with(segment.key, segment.offset, segment.total, Access::read, look);
  if (!allowed) return refuse_get(channel, segment.peer_id);
  const RmaIov range{segment.offset, segment.key, segment.total};
  if (posted) {
    speak(channel);
    if (!segment.more()) was_read(range);
    return;
  }
  SendRequest* request = sends_.acquire();
  if (request == nullptr) return refuse_get(channel, segment.peer_id);
  request->verb = SendRequest::Verb::serve;
  request->channel = &channel;
  request->receiver_id = segment.peer_id;
  request->remote = range;
  request->base = segment.data;
  request->length = segment.total;
  request->more = segment.more();
  ++channel.serves;
  ++serves_;
  channel.serving.push_back(*request);
  channel.streaming.push_back(*request);
  mark_busy(channel);
}

/// Posts what is left of a peer's read. False if the carrier has no room.
bool Messenger::serve(SendRequest& request) {
  Channel& channel = *request.channel;
  Carrier& carrier = *channel.carrier;
  while (request.posted < request.length) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.peer_id = request.receiver_id;
    segment.offset = request.base + request.posted;
    const std::size_t part = std::min(request.length - request.posted, carrier.fragment_max(segment));
    if (part == 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    bool posted = false;
    const bool allowed = bindings_.regions->with(
        request.remote.key, request.remote.address + request.posted, part, Access::read,
        [&](std::byte* source, const MemoryRegion&) {
          const ConstBytes slice(source, part);
          posted = carrier.post(segment, {{&slice, 1}, 0, part}, PayloadMode::copy, 0);
        });
    if (!allowed) {
      refuse_get(channel, request.receiver_id);
      complete(request, Status::access);
      return true;
    }
    if (!posted) return false;
    request.posted += part;
    channel.streamed += part;
  }
  if (!request.more) was_read(request.remote);
  complete(request, Status::ok);
  return true;
}

/// All bytes of a remote read have left: whoever counts reads is told.
void Messenger::was_read(const RmaIov& range) {
  if (bindings_.remote_read_counter != nullptr) bindings_.remote_read_counter->count(Status::ok);
  bindings_.regions->with(range.key, range.address, range.length, Access::read,
                          [](std::byte*, const MemoryRegion& region) {
                            if (region.reads != nullptr) region.reads->count(Status::ok);
                          });
}

void Messenger::refuse_get(Channel& channel, std::uint32_t reader) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::get_failed;
  segment.peer_id = reader;
  segment.total = static_cast<std::uint64_t>(Status::access);
  say(channel, segment);
}

void Messenger::on_get_failed(const Channel& channel, const wire::Segment& segment) {
  RecvRequest* receive = receives_.find(segment.peer_id);
  const bool known = receive != nullptr && receive->channel == &channel &&
                     receive->verb == RecvRequest::Verb::get && receive->requested > 0;
  if (!known) return refuse();
  abandon(*receive, Status::access);
  schedule_pulls(budget_of(channel));
}

}  // namespace cluster::protocol
