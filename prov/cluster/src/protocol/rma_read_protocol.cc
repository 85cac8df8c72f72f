#include "protocol/rma_read_protocol.h"

#include <algorithm>

#include "protocol/region_table.h"

namespace cluster::protocol {

Status RmaReadProtocol::read(Channel& channel, const ReadOp& op) {
  if (channel.rma.reads + op.remote.size() > kReadsMax || outgoing_.left() < op.remote.size() ||
      !pulls_.pool().can_acquire(op.remote.size())) {
    return Status::again;
  }
  RmaGroup* const group = reporter_.group_for(op);
  std::size_t base = 0;
  for (const RmaIov& remote : op.remote) {
    begin(channel, op, remote, base, group);
    base += remote.length;
  }
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void RmaReadProtocol::begin(Channel& channel, const ReadOp& op, const RmaIov& remote, std::size_t base,
                            RmaGroup* group) {
  ReadRequest& request = *pulls_.pool().acquire<ReadRequest>();
  request.channel = &channel;
  request.context = op.context;
  request.slices.add(op.slices);
  request.base = base;
  request.remote = remote;
  request.group = group;
  request.report = op.report;
  request.total = request.capacity = remote.length;
  const bool at_once = channel.tx.ordered.empty() && !op.fence &&
                       !outgoing_.blocked(channel, OutgoingRequest::Kind::read_turn);
  if (at_once) return pulls_.start(request);
  // Operations posted before go first, so that a read behind a write sees what that wrote.
  ReadTurn& turn = outgoing_.acquire<ReadTurn>(channel);
  turn.read = &request;
  turn.fence = op.fence;
  if (outgoing_.enqueue(turn)) start(turn);
}

void RmaReadProtocol::start(ReadTurn& turn) {
  ReadRequest& request = *turn.read;
  outgoing_.complete(turn, Status::ok);
  pulls_.start(request);
}

void RmaReadProtocol::on_request(Channel& channel, const wire::Segment& segment) {
  bool posted = false;
  wire::Segment answer;
  answer.kind = wire::SegmentKind::bulk;
  answer.peer_id = segment.peer_id;
  answer.offset = segment.data;
  const bool at_once = channel.carrier != nullptr && channel.tx.empty() &&
                       segment.total <= channel.carrier->payload_max(answer);
  if (at_once) answer.length = static_cast<std::uint32_t>(segment.total);
  const auto post = [&](std::byte* source, const MemoryRegion&) {
    if (!at_once) return;
    const ConstBytes slice(source, segment.total);
    posted = channel.carrier->post(answer, {{&slice, 1}, 0, slice.size()}, PayloadMode::copy, 0);
  };
  const RmaIov range{segment.offset, segment.key, segment.total};
  RegionTable* const regions = context_.bindings.regions;
  const bool allowed = regions != nullptr && segment.total > 0 &&
                       channel.rma.response_count < kResponsesMax && regions->with(range, Access::read, post);
  if (!allowed) return deny(channel, segment.peer_id);
  if (posted) {
    control_.mark_pending(channel);
    if (!segment.more()) reporter_.read_by_peer(range);
    return;
  }
  ReadResponse* const response = outgoing_.acquire_response<ReadResponse>(channel);
  if (response == nullptr) return deny(channel, segment.peer_id);
  response->receiver_id = segment.peer_id;
  response->remote = range;
  response->offset = segment.data;
  response->length = segment.total;
  response->more = segment.more();
  control_.mark_busy(channel);
}

bool RmaReadProtocol::stream(ReadResponse& response) {
  Channel& channel = *response.channel;
  Carrier& carrier = *channel.carrier;
  while (response.posted < response.length) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.peer_id = response.receiver_id;
    segment.offset = response.offset + response.posted;
    const std::size_t part = std::min(response.length - response.posted, carrier.fragment_max(segment));
    if (part == 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    bool posted = false;
    const RmaIov range{response.remote.address + response.posted, response.remote.key, part};
    const bool allowed =
        context_.bindings.regions->with(range, Access::read, [&](std::byte* source, const MemoryRegion&) {
          const ConstBytes slice(source, part);
          posted = carrier.post(segment, {{&slice, 1}, 0, part}, PayloadMode::copy, 0);
        });
    if (!allowed) {
      deny(channel, response.receiver_id);
      outgoing_.complete(response, Status::access);
      return true;
    }
    if (!posted) return false;
    response.posted += part;
    channel.tx.bulk_bytes += part;
  }
  if (!response.more) reporter_.read_by_peer(response.remote);
  outgoing_.complete(response, Status::ok);
  return true;
}

void RmaReadProtocol::deny(Channel& channel, std::uint32_t receiver_id) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::read_failed;
  segment.peer_id = receiver_id;
  segment.total = static_cast<std::uint64_t>(Status::access);
  control_.send(channel, segment);
}

}  // namespace cluster::protocol
