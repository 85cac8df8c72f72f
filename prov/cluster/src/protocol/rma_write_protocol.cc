#include "protocol/rma_write_protocol.h"

#include "protocol/region_table.h"

namespace cluster::protocol {
namespace {

/// Adds a range, of which this is the first segment, to a peer's write.
RemoteWrite add_range(IncomingWrite& write, const wire::Segment& first) {
  const std::uint64_t length = (first.continues() ? write.ranges_length : 0) + first.total;
  write.ranges_length = first.more() ? length : 0;
  return {.iov = {first.offset, first.key, first.total},
          .length_so_far = length,
          .data = first.data,
          .has_data = first.has_data(),
          .last = !first.more()};
}

}  // namespace

Status RmaWriteProtocol::write(Channel& channel, const WriteOp& op) {
  if (outgoing_.left() < op.remote.size()) return Status::again;
  outgoing_.each_range(op, [&](const RmaRange& range) { begin(channel, op, range); });
  context_.counters.bytes_sent += op.length;
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void RmaWriteProtocol::begin(Channel& channel, const WriteOp& op, const RmaRange& range) {
  auto& request = outgoing_.acquire<WriteRequest>(channel, op);
  request.slices.add(op.slices, op.handles);
  request.base = range.base;
  request.length = range.remote.length;
  request.range = range;
  request.data = op.data;
  request.has_data = op.has_data && range.last;
  request.inject = op.inject;
  const std::uint32_t id = request.id;
  if (outgoing_.enqueue(request)) advance(request);
  // Queued or announced: its bytes go out later. It may also have failed already.
  if (op.inject && outgoing_.find(channel, id) == &request &&
      request.state != OutgoingRequest::State::posted && request.state != OutgoingRequest::State::submitted) {
    outgoing_.keep_copy(request, {op.slices, range.base, range.remote.length, op.handles});
  }
}

bool RmaWriteProtocol::advance(WriteRequest& request) {
  Channel& channel = *request.channel;
  const RmaRange& range = request.range;
  const bool failed_before = range.group != nullptr && range.group->status != Status::ok;
  if (failed_before && range.last && request.posted == 0) {
    // With the last range the target reports the whole write: it must not arrive. If it has begun, the target
    // waits for the rest.
    outgoing_.complete(request, range.group->status);
    return true;
  }
  if (request.posted == 0) {
    if (alone_.write_now(request)) return true;
  }
  Carrier& carrier = *channel.carrier;
  wire::Segment segment{
      .kind = wire::SegmentKind::write,
      .flags = static_cast<std::uint8_t>((request.has_data ? wire::segment_flag::kData : 0) |
                                         (range.last ? 0 : wire::segment_flag::kMore) |
                                         (range.first ? 0 : wire::segment_flag::kContinues)),
      .id = request.id,
      .offset = range.remote.address,
      .total = request.length,
      .key = range.remote.key,
      .data = request.data};
  if (request.posted == 0 && !channel.allows_eager(request.length)) {
    segment.kind = wire::SegmentKind::write_announce;
    if (!post_copy(carrier, segment, {})) return false;
    ++channel.rma.writes_announced;
    OutgoingRequests::leave_queue(request, OutgoingRequest::State::announced);
    return true;
  }
  for (bool first = request.posted == 0; first || request.posted < request.length; first = false) {
    if (!first) segment = {.kind = wire::SegmentKind::write_next};
    const std::size_t left = request.length - request.posted;
    const std::size_t part = next_fragment(left, carrier, segment);
    if (part == 0 && left > 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Gather payload = request.bytes(request.posted, part);
    if (!carrier.post(segment, payload, PayloadMode::copy, 0)) return false;
    request.posted += part;
  }
  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);
  return true;
}

void RmaWriteProtocol::on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  IncomingWrite& write = channel.incoming_write;
  const bool in_parts = payload.size() < segment.total || segment.more() || segment.continues();
  if (write.open || payload.size() > segment.total || (segment.unanswered() && in_parts))
    return context_.refuse_segment();
  write.range = add_range(write, segment);
  write.sender_id = segment.id;
  write.answered = !segment.unanswered();
  write.arrived = 0;
  write.open = true;
  // store() judges the part that has come, which most often is all.
  const bool whole = payload.size() == segment.total;
  write.allowed = context_.may_access(channel, write.range.iov.key) &&
                  (whole || context_.bindings.regions->allows(write.range.iov, Access::write));
  store(channel, payload);
  if (!write.allowed) context_.refuse_access(channel.rma.refused);
}

void RmaWriteProtocol::on_next(Channel& channel, ConstBytes payload) {
  const IncomingWrite& write = channel.incoming_write;
  if (!write.open || payload.size() > write.range.iov.length - write.arrived)
    return context_.refuse_segment();
  store(channel, payload);
}

void RmaWriteProtocol::store(Channel& channel, ConstBytes payload) {
  IncomingWrite& write = channel.incoming_write;
  const bool last = write.arrived + payload.size() == write.range.iov.length;
  if (write.allowed) {
    // Looked up for every part: the region may have been closed meanwhile.
    const RmaIov part{write.range.iov.address + write.arrived, write.range.iov.key, payload.size()};
    write.allowed = context_.bindings.regions->with(
        part, Access::write, [&](std::byte* target, const MemoryRegion& region) {
          copy_short(target, payload.data(), payload.size());
          if (last) reporter_.written_by_peer(channel, write.range, &region);
        });
  }
  write.arrived += payload.size();
  if (!last) return;
  write.open = false;
  if (!write.answered) return;
  if (write.allowed) return control_.send_done(channel, write.sender_id);
  control_.send_failed(channel, write.sender_id);
}

void RmaWriteProtocol::on_announce(Channel& channel, const wire::Segment& segment) {
  const RmaIov range{segment.offset, segment.key, segment.total};
  const bool allowed = context_.may_access(channel, range.key) &&
                       context_.bindings.regions->allows(range, Access::write) && segment.total > 0;
  const bool has_place = allowed && channel.rma.write_targets < kResponsesMax;
  WriteTarget* const target = has_place ? pulls_.pool().acquire<WriteTarget>() : nullptr;
  const RemoteWrite write = add_range(channel.incoming_write, segment);
  if (!allowed) context_.refuse_access(channel.rma.refused);
  if (target == nullptr) return control_.send_failed(channel, segment.id);
  ++channel.rma.write_targets;
  target->channel = &channel;
  target->write = write;
  target->sender_id = segment.id;
  target->total = target->capacity = segment.total;
  pulls_.start(*target);
}

}  // namespace cluster::protocol
