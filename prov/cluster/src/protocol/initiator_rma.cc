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

}  // namespace

/// True if the access need not wait for an operation posted before `own` (null: for any).
template <InitiatorRma::Kind kind>
bool InitiatorRma::comes_last(const Channel& channel, const OutgoingRequest* own) const {
  for (const OutgoingRequest* before = channel.outgoing.front(); before != nullptr && before != own;
       before = channel.outgoing.after(*before)) {
    if (comes_first(*before, kind == Kind::read, context_.bindings.ordering)) return false;
  }
  return true;
}
template bool InitiatorRma::comes_last<InitiatorRma::Kind::write>(const Channel&,
                                                                  const OutgoingRequest*) const;
template bool InitiatorRma::comes_last<InitiatorRma::Kind::read>(const Channel&,
                                                                 const OutgoingRequest*) const;

void InitiatorRma::begun(Channel& channel, Kind kind) {
  ++pending_;
  if (kind == Kind::read) {
    ++channel.rma.gets_pending;
    ++channel.rma.reads;
  } else {
    ++channel.rma.puts_pending;
    if (!channel.rma.reached.access->in_order()) ++channel.rma.writes_announced;
  }
}

void InitiatorRma::denied(Channel& channel, Completion::Kind kind, const RmaOp& op) {
  ++context_.counters.rma_alone;
  reporter_.rma_completed(kind, nullptr, op.context, op.report, Status::access, channel);
}

bool InitiatorRma::write_now(WriteRequest& request) {
  Channel& channel = *request.channel;
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr || request.has_data) return false;
  if (!may_go_behind<Kind::write>(channel, &request)) return false;
  const bool copied = request.inject && request.copy == nullptr;
  const RmaIov& range = request.range.remote;
  const Outcome outcome = access->put(range, request.bytes(0, range.length),
                                      terms<Kind::write>(channel, copied), {request.id, false});
  if (outcome == Outcome::unsuited) return false;
  if (outcome == Outcome::pending) {
    ++pending_;
    ++channel.rma.writes_announced;
    OutgoingRequests::leave_queue(request, OutgoingRequest::State::submitted);
  } else {
    outgoing_.complete(request, outcome == Outcome::done ? Status::ok : Status::access);
  }
  return true;
}

bool InitiatorRma::read_now(QueuedRead& queued) {
  Channel& channel = *queued.channel;
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr) return false;
  if (!may_go_behind<Kind::read>(channel, &queued)) return false;
  ReadRequest& request = *queued.read;
  const RmaIov& range = request.range.remote;
  Outcome outcome = Outcome::done;
  if (range.length != 0) {
    outcome = access->get(range, {request.buffers(), request.base, request.slices.handles()},
                          terms<Kind::read>(channel, false), {queued.id, true});
  }
  if (outcome == Outcome::unsuited) return false;
  if (outcome == Outcome::pending) {
    ++pending_;
    ++channel.rma.reads;
    OutgoingRequests::leave_queue(queued, OutgoingRequest::State::submitted);
  } else {
    finish_read(queued, outcome == Outcome::done ? Status::ok : Status::access);
  }
  return true;
}

void InitiatorRma::finish_read(QueuedRead& queued, Status status) {
  ReadRequest& request = *queued.read;
  outgoing_.complete(queued, Status::ok);
  if (request.range.group != nullptr && request.total > 0) --request.range.group->unrequested;
  pulls_.complete(request, status);
}

void InitiatorRma::over(Channel& channel, carrier::AccessTicket ticket, Status status) {
  --pending_;
  if (ticket.queued()) [[unlikely]] {
    OutgoingRequest* const request = outgoing_.find(channel, ticket.request());
    if (request == nullptr) return;
    return ticket.reads() ? finish_read(static_cast<QueuedRead&>(*request), status)
                          : outgoing_.complete(*request, status);
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

}  // namespace cluster::protocol
