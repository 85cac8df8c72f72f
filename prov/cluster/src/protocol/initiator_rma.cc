#include "protocol/initiator_rma.h"

namespace cluster::protocol {
namespace {

/// True if a read or write by the initiator must not take effect before this operation does.
bool comes_first(const OutgoingRequest& before, bool is_read, const Ordering& order) {
  if (before.fence && before.state == OutgoingRequest::State::queued) return true;
  const bool after_read = is_read ? order.read_after_read : order.write_after_read;
  const bool after_write = is_read ? order.read_after_write : order.write_after_write;
  switch (before.kind) {
    case OutgoingRequest::Kind::message: return is_read ? order.read_after_send : order.write_after_send;
    case OutgoingRequest::Kind::write: return after_write;
    case OutgoingRequest::Kind::queued_read: return after_read;
    case OutgoingRequest::Kind::atomic: return after_read || after_write;
    case OutgoingRequest::Kind::read_response:
    case OutgoingRequest::Kind::atomic_response: break;  // the peer's operations
  }
  return false;
}

std::optional<Status> status_of(RemoteRegions::Outcome outcome) {
  if (outcome == RemoteRegions::Outcome::unsuited) return std::nullopt;
  return outcome == RemoteRegions::Outcome::done ? Status::ok : Status::access;
}

}  // namespace

bool InitiatorRma::comes_behind_others(const Channel& channel, const OutgoingRequest* own,
                                       bool is_read) const {
  const Ordering& order = context_.bindings.ordering;
  for (const OutgoingRequest* before = channel.outgoing.front(); before != nullptr && before != own;
       before = channel.outgoing.after(*before)) {
    if (comes_first(*before, is_read, order)) return true;
  }
  // Messages that were sent at once are not among those: they lie in the carrier.
  return (is_read ? order.read_after_send : order.write_after_send) && !channel.carrier->drained();
}

bool InitiatorRma::comes_behind(const Channel& channel, const OutgoingRequest* own, bool is_read) const {
  const Ordering& order = context_.bindings.ordering;
  const bool after_writes = is_read ? order.read_after_write : order.write_after_write;
  return (after_writes && !channel.rma.posted.writes.empty()) || comes_behind_others(channel, own, is_read);
}

bool InitiatorRma::overtakes(const Channel& channel, bool fence, bool is_read) const {
  const Ordering& order = context_.bindings.ordering;
  const bool after_reads = fence || (is_read ? order.read_after_read : order.write_after_read);
  if (after_reads && channel.rma.reads > 0) return true;
  if (fence && (!channel.outgoing.empty() || !channel.rma.posted.writes.empty())) return true;
  return comes_behind(channel, nullptr, is_read);
}

bool InitiatorRma::store(Channel& channel, const WriteOp& op) {
  if (op.has_data || op.remote.size() != 1 || op.slices.size() != 1 || overtakes(channel, op.fence, false))
    return false;
  const RmaIov& range = op.remote.front();
  RemoteRegions& regions = *channel.rma.reached.regions;
  if (regions.store(range.key, range.address, op.slices.front()) != RemoteRegions::Outcome::done)
    return false;
  context_.counters.bytes_sent += op.length;
  report_done(Completion::Kind::write, op);
  return true;
}

bool InitiatorRma::load(Channel& channel, const ReadOp& op) {
  if (op.remote.size() != 1 || op.slices.size() != 1 || overtakes(channel, op.fence, true)) return false;
  const RmaIov& range = op.remote.front();
  RemoteRegions& regions = *channel.rma.reached.regions;
  if (regions.load(range.key, range.address, op.slices.front()) != RemoteRegions::Outcome::done) return false;
  report_done(Completion::Kind::read, op);
  return true;
}

void InitiatorRma::report_done(Completion::Kind kind, const RmaOp& op) {
  ++context_.counters.rma_alone;
  reporter_.rma_succeeded(kind, op);
}

std::optional<Status> InitiatorRma::write_now(const WriteRequest& request) {
  Channel& channel = *request.channel;
  if (channel.rma.reached.regions == nullptr || request.has_data || comes_behind(channel, &request, false))
    return std::nullopt;
  const RmaIov& range = request.range.remote;
  return status_of(channel.rma.reached.regions->write(range.key, range.address,
                                                      {request.slices.all(), request.base, range.length}));
}

std::optional<Status> InitiatorRma::read_now(const QueuedRead& queued) {
  Channel& channel = *queued.channel;
  const ReadRequest& request = *queued.read;
  if (channel.rma.reached.regions == nullptr || comes_behind(channel, &queued, true)) return std::nullopt;
  const RmaIov& range = request.range.remote;
  if (range.length == 0) return Status::ok;
  return status_of(channel.rma.reached.regions->read(range.key, range.address, request.buffers(),
                                                     request.base, range.length));
}

template <typename Access>
bool InitiatorRma::act(Channel& channel, const RmaOp& op, Completion::Kind kind, Access&& access) {
  // If it has to go the general way after all, it must be taken there: what is refused has no effect.
  if (op.remote.size() != 1 || outgoing_.left() == 0) return false;
  if (overtakes(channel, op.fence, kind == Completion::Kind::read)) return false;
  const std::optional<Status> status = status_of(access(op.remote.front()));
  if (!status) return false;
  ++context_.counters.rma_alone;
  reporter_.rma_completed(kind, nullptr, op.context, op.report, *status, channel);
  return true;
}

bool InitiatorRma::write(Channel& channel, const WriteOp& op) {
  if (op.has_data) return false;
  const bool over = act(channel, op, Completion::Kind::write, [&](const RmaIov& range) {
    return channel.rma.reached.regions->write(range.key, range.address, {op.slices, 0, range.length});
  });
  if (over) context_.counters.bytes_sent += op.length;
  return over;
}

/// A read of nothing is complete without a region, as it is in the general way.
bool InitiatorRma::read(Channel& channel, const ReadOp& op) {
  return act(channel, op, Completion::Kind::read, [&](const RmaIov& range) {
    if (range.length == 0) return RemoteRegions::Outcome::done;
    return channel.rma.reached.regions->read(range.key, range.address, op.slices, 0, range.length);
  });
}

}  // namespace cluster::protocol
