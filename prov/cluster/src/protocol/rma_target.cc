#include "protocol/rma_target.h"

#include <algorithm>

namespace cluster::protocol {
namespace {

/// Adds a range to a peer's write. `first`: the first segment of the range.
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

void RmaTarget::on_write(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  IncomingWrite& write = channel.incoming_write;
  const bool in_parts = payload.size() < segment.total || segment.more() || segment.continues();
  if (write.open || payload.size() > segment.total || (segment.unanswered() && in_parts))
    return context_.refuse_segment();
  write.range = add_range(write, segment);
  write.sender_id = segment.id;
  write.answered = !segment.unanswered();
  write.arrived = 0;
  write.open = true;
  // store() checks the region for the part that has arrived. If more parts follow, this code checks it for
  // the whole range.
  const bool whole = payload.size() == segment.total;
  write.allowed = context_.may_access(channel, write.range.iov.key) &&
                  (whole || context_.bindings.regions->allows(write.range.iov, Access::write));
  store(channel, payload);
  if (!write.allowed) context_.refuse_access(channel.rma.refused);
}

void RmaTarget::on_write_next(Channel& channel, ConstBytes payload) {
  const IncomingWrite& write = channel.incoming_write;
  if (!write.open || payload.size() > write.range.iov.length - write.arrived)
    return context_.refuse_segment();
  store(channel, payload);
}

void RmaTarget::store(Channel& channel, ConstBytes payload) {
  IncomingWrite& write = channel.incoming_write;
  const bool last = write.arrived + payload.size() == write.range.iov.length;
  if (write.allowed) {
    // Looks up the region again for each part, because the application may have closed the region meanwhile.
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

void RmaTarget::on_announce(Channel& channel, const wire::Segment& segment) {
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

void RmaTarget::on_read(Channel& channel, const wire::Segment& segment) {
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

void RmaTarget::on_expose(Channel& channel, const wire::Segment& segment) {
  const RmaIov range{segment.offset, segment.key, segment.total};
  const bool may_ask =
      channel.reads != nullptr && segment.total > 0 && context_.may_access(channel, range.key);
  ReadGrant* grant = may_ask ? outgoing_.acquire_grant(channel, range) : nullptr;
  carrier::ExposedMemory memory;
  if (grant != nullptr && !channel.reads->expose(grant->id, {grant->held.begin, range.length}, memory)) {
    outgoing_.complete(*grant, Status::ok);
    grant = nullptr;
  }
  control_.send(channel, {.kind = wire::SegmentKind::exposed,
                          .flags = memory.checksum ? wire::segment_flag::kData : std::uint8_t{0},
                          .id = grant != nullptr ? grant->id : 0,
                          .peer_id = segment.peer_id,
                          .offset = memory.address,
                          .total = grant != nullptr ? segment.total : 0,
                          .key = memory.key,
                          .data = memory.checksum.value_or(0)});
}

/// A grant that this side has ended itself is not known any more: its region was closed.
void RmaTarget::on_device_over(Channel& channel, const wire::Segment& segment) {
  OutgoingRequest* const found = outgoing_.find(channel, segment.id);
  if (found == nullptr) return;
  if (found->kind != OutgoingRequest::Kind::read_grant) return context_.refuse_segment();
  const RmaIov range = static_cast<const ReadGrant&>(*found).remote;
  outgoing_.complete(*found, Status::ok);
  if (segment.total != range.length || segment.more()) return;
  const auto report = [&](std::byte*, const MemoryRegion& region) {
    reporter_.accessed_by_peer(Access::read, &region);
  };
  if (!context_.bindings.regions->with(range, Access::read, report))
    reporter_.accessed_by_peer(Access::read, nullptr);
}

bool RmaTarget::stream(ReadResponse& response) {
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

void RmaTarget::send_read_failed(Channel& channel, std::uint32_t receiver_id) {
  control_.send(channel, {.kind = wire::SegmentKind::read_failed,
                          .peer_id = receiver_id,
                          .total = static_cast<std::uint64_t>(Status::access)});
}

}  // namespace cluster::protocol
