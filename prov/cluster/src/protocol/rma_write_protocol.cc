#include "protocol/rma_write_protocol.h"

#include "protocol/region_table.h"

namespace cluster::protocol {
namespace {

/// How long a peer's write is up to this range of it, which follows the others.
std::uint64_t write_length(IncomingWrite& write, const wire::Segment& range) {
  const std::uint64_t length = (range.continues() ? write.ranges_length : 0) + range.total;
  write.ranges_length = range.more() ? length : 0;
  return length;
}

RmaIov range_of(const wire::Segment& segment) { return {segment.offset, segment.key, segment.total}; }

}  // namespace

Status RmaWriteProtocol::write(Channel& channel, const WriteOp& op) {
  if (outgoing_.left() < op.remote.size()) return Status::again;
  RmaGroup* const group = reporter_.group_for(op);
  std::size_t base = 0;
  for (const RmaIov& remote : op.remote) {
    begin(channel, op, remote, base, group);
    base += remote.length;
  }
  context_.counters.bytes_sent += op.length;
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void RmaWriteProtocol::begin(Channel& channel, const WriteOp& op, const RmaIov& remote, std::size_t base,
                             RmaGroup* group) {
  WriteRequest& request = outgoing_.acquire<WriteRequest>(channel);
  request.context = op.context;
  request.slices.add(op.slices);
  request.base = base;
  request.length = remote.length;
  request.remote = remote;
  request.data = op.data;
  request.more = &remote != &op.remote.back();
  request.continues = &remote != &op.remote.front();
  request.has_data = op.has_data && !request.more;
  request.report = op.report;
  request.fence = op.fence;
  request.group = group;
  const std::uint32_t id = request.id;
  if (outgoing_.enqueue(request)) advance(request);
  // Queued or announced: its bytes go out later. It may also have failed already.
  if (op.inject && outgoing_.find(channel, id) == &request &&
      request.state != OutgoingRequest::State::posted) {
    OutgoingRequests::keep_copy(request, {op.slices, base, remote.length});
  }
}

bool RmaWriteProtocol::advance(WriteRequest& request) {
  Channel& channel = *request.channel;
  const bool failed_before = request.group != nullptr && request.group->status != Status::ok;
  if (failed_before && !request.more && request.posted == 0) {
    // With the last range the target reports the whole write: it must not arrive. If it has begun, the target
    // waits for the rest.
    outgoing_.complete(request, request.group->status);
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
    segment.kind = wire::SegmentKind::write_announce;
    if (!carrier.post(segment, {}, PayloadMode::copy, 0)) return false;
    ++channel.rma.writes_announced;
    OutgoingRequests::leave_queue(request, OutgoingRequest::State::announced);
    return true;
  }
  segment.kind = wire::SegmentKind::write;
  for (bool first = request.posted == 0; first || request.posted < request.length; first = false) {
    if (!first) {
      segment = {};
      segment.kind = wire::SegmentKind::write_next;
    }
    const std::size_t left = request.length - request.posted;
    const std::size_t part = next_fragment(left, carrier, segment);
    if (part == 0 && left > 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Gather payload{request.slices.all(), request.base + request.posted, part};
    if (!carrier.post(segment, payload, PayloadMode::copy, 0)) return false;
    request.posted += part;
  }
  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);
  return true;
}

void RmaWriteProtocol::on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  IncomingWrite& write = channel.incoming_write;
  if (write.open || payload.size() > segment.total) return context_.refuse_segment();
  write.first = segment;
  write.arrived = 0;
  write.write_length = write_length(write, segment);
  write.open = true;
  RegionTable* const regions = context_.bindings.regions;
  write.allowed = regions != nullptr && regions->allows(range_of(segment), Access::write);
  store(channel, payload);
}

void RmaWriteProtocol::on_next(Channel& channel, ConstBytes payload) {
  const IncomingWrite& write = channel.incoming_write;
  if (!write.open || payload.size() > write.first.total - write.arrived) return context_.refuse_segment();
  store(channel, payload);
}

void RmaWriteProtocol::store(Channel& channel, ConstBytes payload) {
  IncomingWrite& write = channel.incoming_write;
  if (write.allowed && !payload.empty()) {
    // Checked again for every part: the region may have been closed meanwhile.
    const RmaIov part{write.first.offset + write.arrived, write.first.key, payload.size()};
    write.allowed = context_.bindings.regions->with(
        part, Access::write,
        [&](std::byte* target, const MemoryRegion&) { std::memcpy(target, payload.data(), payload.size()); });
  }
  write.arrived += payload.size();
  if (write.arrived < write.first.total) return;
  write.open = false;
  if (!write.allowed) return control_.deny(channel, write.first.id);
  reporter_.written_by_peer(channel, {.iov = range_of(write.first),
                                      .more = write.first.more(),
                                      .has_data = write.first.has_data(),
                                      .data = write.first.data,
                                      .write_length = write.write_length});
  control_.confirm(channel, write.first.id);
}

void RmaWriteProtocol::on_announce(Channel& channel, const wire::Segment& segment) {
  const std::uint64_t length = write_length(channel.incoming_write, segment);
  RegionTable* const regions = context_.bindings.regions;
  const bool allowed = regions != nullptr && regions->allows(range_of(segment), Access::write) &&
                       segment.total > 0 && channel.rma.write_targets < kResponsesMax;
  WriteTarget* const target = allowed ? pulls_.pool().acquire<WriteTarget>() : nullptr;
  if (target == nullptr) return control_.deny(channel, segment.id);
  ++channel.rma.write_targets;
  target->channel = &channel;
  target->key = segment.key;
  target->address = segment.offset;
  target->write_length = length;
  target->last = !segment.more();
  target->data = segment.data;
  target->has_data = segment.has_data();
  target->sender_id = segment.id;
  target->total = target->capacity = segment.total;
  pulls_.start(*target);
}

}  // namespace cluster::protocol
