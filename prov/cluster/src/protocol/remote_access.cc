#include "protocol/remote_access.h"

namespace cluster::protocol {

/// Returns true if an access that the initiator performs must not overtake the earlier operation `before`.
/// `is_read`: true if the access is a read, false if it is a write.
bool RemoteAccess::comes_first(const OutgoingRequest& before, bool is_read, const Ordering& order) {
  if (before.fence && before.state == State::queued) return true;
  const bool after_read = is_read ? order.read_after_read : order.write_after_read;
  const bool after_write = is_read ? order.read_after_write : order.write_after_write;
  switch (before.kind) {
    case Kind::message: return is_read ? order.read_after_send : order.write_after_send;
    case Kind::write: return after_write;
    case Kind::queued_read: return after_read;
    case Kind::atomic: return after_read || after_write;
    case Kind::read_response:
    case Kind::atomic_response:
    case Kind::read_grant: break;  // the peer's operations
  }
  return false;
}

/// Returns true if the access need not wait for any operation that was posted before `own`. If `own` is null,
/// considers all operations in progress.
bool RemoteAccess::comes_last(const Channel& channel, const OutgoingRequest* own, bool reads) const {
  for (const OutgoingRequest* before = channel.outgoing.front(); before != nullptr && before != own;
       before = channel.outgoing.after(*before)) {
    if (comes_first(*before, reads, context_.bindings.ordering)) return false;
  }
  return true;
}

void RemoteAccess::denied(Channel& channel, Completion::Kind kind, const RmaOp& op) {
  ++context_.counters.rma_alone;
  reporter_.rma_completed(kind, nullptr, op.context, op.report, Status::access, channel);
}

void RemoteAccess::over(Channel& channel, carrier::AccessTicket ticket, Status status) {
  --pending_;
  if (ticket.queued()) [[unlikely]] {
    OutgoingRequest* const request = outgoing_.find(channel, ticket.request());
    if (request != nullptr) finish(*request, status);
    return;
  }
  if (ticket.reads()) {
    --channel.rma.gets_pending;
    --channel.rma.reads;
  } else {
    --channel.rma.puts_pending;
    if (!channel.rma.reached.access->in_order()) --channel.rma.writes_announced;
  }
  const auto kind = ticket.reads() ? Completion::Kind::read : Completion::Kind::write;
  if (status == Status::ok) [[likely]]
    return reporter_.rma_succeeded(kind, ticket.context(), ticket.report());
  reporter_.rma_completed(kind, nullptr, ticket.context(), ticket.report(), status, channel);
}

/// `outcome`: the result of MemoryAccess for the access of a request. Returns false if the transport cannot
/// perform the access, so that the target must perform it.
bool RemoteAccess::account(OutgoingRequest& request, Outcome outcome) {
  if (outcome == Outcome::unsuited) return false;
  if (outcome != Outcome::pending) {
    finish(request, outcome == Outcome::done ? Status::ok : Status::access);
    return true;
  }
  RmaState& rma = request.channel->rma;
  ++pending_;
  ++(request.kind == Kind::queued_read ? rma.reads : rma.writes_announced);
  OutgoingRequests::leave_queue(request, State::submitted);
  return true;
}

void RemoteAccess::finish(OutgoingRequest& request, Status status) {
  if (request.kind != Kind::queued_read) return outgoing_.complete(request, status);
  ReadRequest& read = *static_cast<QueuedRead&>(request).read;
  outgoing_.complete(request, Status::ok);
  if (read.range.group != nullptr && read.total > 0) --read.range.group->unrequested;
  pulls_.complete(read, status);
}

bool RemoteAccess::try_write(WriteRequest& request) {
  Channel& channel = *request.channel;
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr || request.has_data || !comes_last(channel, &request, false)) return false;
  const bool copied = request.inject && request.copy == nullptr;
  const RmaIov& range = request.range.remote;
  return account(request, access->put(range, request.bytes(0, range.length), terms<false>(channel, copied),
                                      {request.id, false}));
}

bool RemoteAccess::try_read(QueuedRead& queued) {
  Channel& channel = *queued.channel;
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr || !comes_last(channel, &queued, true)) return false;
  const ReadRequest& request = *queued.read;
  const RmaIov& range = request.range.remote;
  if (range.length == 0) return account(queued, Outcome::done);
  return account(queued, access->get(range, {request.buffers(), request.base, request.slices.handles()},
                                     terms<true>(channel, false), {queued.id, true}));
}

Status RemoteAccess::request(Channel& channel, const WriteOp& op) {
  if (outgoing_.left() < op.remote.size()) return Status::again;
  outgoing_.each_range(op, [&](const RmaRange& range) { begin(channel, op, range); });
  context_.counters.bytes_sent += op.length;
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void RemoteAccess::begin(Channel& channel, const WriteOp& op, const RmaRange& range) {
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
  // The bytes of a queued or announced request are transmitted later, so an injected operation needs a copy.
  // The code above may have completed and released the request. Therefore this code first checks by the id
  // that the request still exists.
  if (op.inject && outgoing_.find(channel, id) == &request && request.state != State::posted &&
      request.state != State::submitted) {
    outgoing_.keep_copy(request, {op.slices, range.base, range.remote.length, op.handles});
  }
}

bool RemoteAccess::advance(WriteRequest& request) {
  Channel& channel = *request.channel;
  const RmaRange& range = request.range;
  const bool failed_before = range.group != nullptr && range.group->status != Status::ok;
  if (failed_before && range.last && request.posted == 0) {
    // The target reports the whole write when the last range arrives. Therefore the last range of a failed
    // write must not arrive. But if a part of the last range is posted, the rest must follow, because the
    // target waits for the rest.
    outgoing_.complete(request, range.group->status);
    return true;
  }
  if (request.posted == 0 && try_write(request)) return true;
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
    OutgoingRequests::leave_queue(request, State::announced);
    return true;
  }
  for (bool first = request.posted == 0; first || request.posted < request.length; first = false) {
    if (!first) segment = {.kind = wire::SegmentKind::write_next};
    const std::size_t left = request.length - request.posted;
    const std::size_t part = next_fragment(left, carrier, segment);
    if (part == 0 && left > 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    if (!carrier.post(segment, request.bytes(request.posted, part), PayloadMode::copy, 0)) return false;
    request.posted += part;
  }
  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);
  return true;
}

Status RemoteAccess::request(Channel& channel, const ReadOp& op) {
  if (channel.rma.reads + op.remote.size() > kReadsMax || outgoing_.left() < op.remote.size() ||
      !pulls_.pool().can_acquire(op.remote.size())) {
    return Status::again;
  }
  pulls_.pool().reserve(op.remote.size());
  outgoing_.each_range(op, [&](const RmaRange& range) { begin(channel, op, range); });
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

void RemoteAccess::begin(Channel& channel, const ReadOp& op, const RmaRange& range) {
  ReadRequest& request = *pulls_.pool().acquire<ReadRequest>();
  request.channel = &channel;
  request.context = op.context;
  request.slices.add(op.slices, op.handles);
  request.base = range.base;
  request.range = range;
  request.report = op.report;
  request.total = request.capacity = range.remote.length;
  const bool at_once =
      channel.tx.ordered.empty() && !op.fence && !outgoing_.blocked(channel, Kind::queued_read);
  if (at_once) return pulls_.start(request);
  // Operations that the application posted earlier go first. Therefore a read behind a write sees the written
  // bytes.
  auto& queued = outgoing_.acquire<QueuedRead>(channel, op);
  queued.read = &request;
  if (outgoing_.enqueue(queued)) start(queued);
}

void RemoteAccess::start(QueuedRead& queued) {
  if (try_read(queued)) return;
  ReadRequest& request = *queued.read;
  outgoing_.complete(queued, Status::ok);
  pulls_.start(request);
}

}  // namespace cluster::protocol
