#include "protocol/rma_read_protocol.h"

#include <algorithm>

#include "protocol/region_table.h"

namespace cluster::protocol {

Status RmaReadProtocol::read(Channel& channel, const ReadOp& op) {
  if (channel.rma.reads + op.remote.size() > kReadsMax || outgoing_.left() < op.remote.size() ||
      !pulls_.pool().can_acquire(op.remote.size())) {
    return Status::again;
  }
  pulls_.pool().reserve(op.remote.size());
  outgoing_.each_range(op, [&](const RmaRange& range) { begin(channel, op, range); });
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void RmaReadProtocol::begin(Channel& channel, const ReadOp& op, const RmaRange& range) {
  ReadRequest& request = *pulls_.pool().acquire<ReadRequest>();
  request.channel = &channel;
  request.context = op.context;
  request.slices.add(op.slices, op.handles);
  request.base = range.base;
  request.range = range;
  request.report = op.report;
  request.total = request.capacity = range.remote.length;
  const bool at_once = channel.tx.ordered.empty() && !op.fence &&
                       !outgoing_.blocked(channel, OutgoingRequest::Kind::queued_read);
  if (at_once) return pulls_.start(request);
  // Operations posted before go first, so that a read behind a write sees what that wrote.
  auto& queued = outgoing_.acquire<QueuedRead>(channel, op);
  queued.read = &request;
  if (outgoing_.enqueue(queued)) start(queued);
}

void RmaReadProtocol::start(QueuedRead& queued) {
  if (alone_.read_now(queued)) return;
  ReadRequest& request = *queued.read;
  outgoing_.complete(queued, Status::ok);
  pulls_.start(request);
}

void RmaReadProtocol::on_request(Channel& channel, const wire::Segment& segment) {
  bool posted = false;
  const wire::Segment answer{
      .kind = wire::SegmentKind::bulk, .peer_id = segment.peer_id, .offset = segment.data};
  const bool at_once = channel.carrier != nullptr && channel.tx.empty() &&
                       segment.total <= channel.carrier->payload_max(answer);
  const auto post = [&](std::byte* source, const MemoryRegion& region) {
    posted = at_once && post_copy(*channel.carrier, answer, {source, segment.total});
    if (posted && !segment.more()) reporter_.accessed_by_peer(Access::read, &region);
  };
  const RmaIov range{segment.offset, segment.key, segment.total};
  const bool has_place = channel.rma.response_count < kResponsesMax;
  const bool allowed = has_place && segment.total > 0 && context_.may_access(channel, range.key) &&
                       context_.bindings.regions->with(range, Access::read, post);
  if (!allowed) {
    if (has_place) context_.refuse_access(channel.rma.refused);
    return send_read_failed(channel, segment.peer_id);
  }
  if (posted) return control_.mark_pending(channel);
  auto* const response = outgoing_.acquire_response<ReadResponse>(channel);
  if (response == nullptr) return send_read_failed(channel, segment.peer_id);
  response->receiver_id = segment.peer_id;
  response->remote = range;
  response->offset = segment.data;
  response->length = segment.total;
  response->last = !segment.more();
  control_.mark_busy(channel);
}

bool RmaReadProtocol::stream(ReadResponse& response) {
  Channel& channel = *response.channel;
  Carrier& carrier = *channel.carrier;
  while (response.posted < response.length) {
    const wire::Segment segment{.kind = wire::SegmentKind::bulk,
                                .peer_id = response.receiver_id,
                                .offset = response.offset + response.posted};
    const std::size_t part = std::min(response.length - response.posted, carrier.fragment_max(segment));
    if (part == 0) return false;
    bool posted = false;
    const RmaIov range{response.remote.address + response.posted, response.remote.key, part};
    const bool allowed = context_.bindings.regions->with(
        range, Access::read, [&](std::byte* source, const MemoryRegion& region) {
          posted = post_copy(carrier, segment, {source, part});
          const bool all = posted && response.posted + part == response.length;
          if (all && response.last) reporter_.accessed_by_peer(Access::read, &region);
        });
    if (!allowed) {
      send_read_failed(channel, response.receiver_id);
      outgoing_.complete(response, Status::access);
      return true;
    }
    if (!posted) return false;
    response.posted += part;
    channel.tx.bulk_bytes += part;
  }
  outgoing_.complete(response, Status::ok);
  return true;
}

void RmaReadProtocol::send_read_failed(Channel& channel, std::uint32_t receiver_id) {
  control_.send(channel, {.kind = wire::SegmentKind::read_failed,
                          .peer_id = receiver_id,
                          .total = static_cast<std::uint64_t>(Status::access)});
}

}  // namespace cluster::protocol
