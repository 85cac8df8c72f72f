#include "protocol/messenger.h"

#include <algorithm>

namespace cluster::protocol {

Messenger::Messenger(const MessengerSettings& settings, Counters& counters, AddressHandles& handles)
    : context_{settings, counters, handles},
      reporter_(context_),
      control_(context_),
      outgoing_(context_, reporter_),
      credit_(context_, control_),
      pulls_(context_, control_, reporter_),
      matcher_(context_, control_, reporter_, credit_, pulls_),
      eager_(context_, outgoing_, reporter_, control_, credit_, matcher_, pulls_),
      rendezvous_(context_, outgoing_, control_, matcher_, pulls_),
      rma_(context_, outgoing_, reporter_, control_, pulls_),
      atomics_(context_, outgoing_, reporter_, control_),
      datagrams_(context_, reporter_, matcher_, pulls_),
      sender_(context_, outgoing_, control_, eager_, rendezvous_, rma_.writes(), rma_.reads(), atomics_) {}

void Messenger::arrive(Channel& channel, const wire::Segment& segment, ConstBytes payload,
                       const ArrivalInfo& info) {
  using wire::SegmentKind;
  switch (segment.kind) {
    case SegmentKind::eager:
    case SegmentKind::eager_first: return eager_.on_first(channel, segment, payload);
    case SegmentKind::eager_next: return eager_.on_next(channel, payload);
    case SegmentKind::announce: return rendezvous_.on_announce(channel, segment);
    case SegmentKind::pull: return rendezvous_.on_pull(channel, segment);
    case SegmentKind::bulk: return pulls_.on_bulk(channel, segment, payload, info);
    case SegmentKind::placed: return pulls_.on_placed(channel, segment, info);
    case SegmentKind::done: return on_answer(channel, segment, Status::ok);
    case SegmentKind::failed: return on_answer(channel, segment, Status::access);
    case SegmentKind::credit: return CreditManager::on_credit(channel, segment);
    case SegmentKind::write: return rma_.writes().on_first(channel, segment, payload);
    case SegmentKind::write_next: return rma_.writes().on_next(channel, payload);
    case SegmentKind::write_announce: return rma_.writes().on_announce(channel, segment);
    case SegmentKind::read: return rma_.reads().on_request(channel, segment);
    case SegmentKind::read_failed: return pulls_.on_read_failed(channel, segment);
    case SegmentKind::atomic: return atomics_.on_request(channel, segment, payload);
    case SegmentKind::fetched: return atomics_.on_fetched(channel, segment, payload);
    case SegmentKind::padding: return;
    case SegmentKind::group_join:
    case SegmentKind::group_start:
    case SegmentKind::group_status:
    case SegmentKind::group_nak:
    case SegmentKind::group_ask:
    case SegmentKind::group_repair:
    case SegmentKind::group_leave:
    case SegmentKind::group_end:
      if (context_.bindings.engine.groups != nullptr)
        context_.bindings.engine.groups->on_group_segment(channel, segment, payload);
      return;
    case SegmentKind::close: channel.peer_closed = true; return;
  }  // no other kind passes wire::decode()
}

void Messenger::arrive_run(Channel& channel, const wire::RunView& run, const ArrivalInfo& info) {
  if (run.segment.kind == wire::SegmentKind::bulk) return pulls_.on_bulk_run(channel, run, info);
  for (std::size_t i = 0; i < run.count; ++i) eager_.on_next(channel, run.payload(i));
}

/// The peer has finished with a request of this side, or it has failed there.
void Messenger::on_answer(Channel& channel, const wire::Segment& segment, Status status) {
  using Kind = OutgoingRequest::Kind;
  OutgoingRequest* const request = outgoing_.find(channel, segment.id);
  if (request == nullptr) return context_.refuse_segment();
  if (request->kind == Kind::atomic && request->unanswered > 0) {
    return atomics_.answered(static_cast<AtomicRequest&>(*request), status);
  }
  const bool answerable =
      request->kind == Kind::write || (request->kind == Kind::message && status == Status::ok);
  const bool valid = answerable && request->state != OutgoingRequest::State::queued &&
                     request->state != OutgoingRequest::State::submitted &&
                     !static_cast<PulledRequest&>(*request).done;
  if (!valid) return context_.refuse_segment();
  request->status = status;
  outgoing_.finish(static_cast<PulledRequest&>(*request));
}

void Messenger::acked(std::span<const Token> tokens) {
  for (const Token token : tokens) outgoing_.acked(token);
}

void Messenger::pump() {
  control_.pump_busy([this](Channel& channel) { return sender_.pump(channel); });
  if (!pulls_.idle()) pulls_.copy_in();
}

bool Messenger::references(const Channel& channel) const {
  const MatchQueues& queues = matcher_.queues();
  const bool awaited = std::any_of(queues.begin(), queues.end(), [&](const MatchQueue& queue) {
    return queue.find_directed(&channel) != nullptr;
  });
  return awaited || !channel.outgoing.empty() || !channel.incoming.empty() ||
         !channel.rma.responses.empty() || channel.rma.puts_pending + channel.rma.gets_pending != 0 ||
         !channel.unexpected.messages.empty() || channel.tx.busy || channel.tx.control_pending;
}

void Messenger::fail(Channel& channel, Status status, bool directed) {
  if (context_.bindings.engine.groups != nullptr)
    context_.bindings.engine.groups->on_channel_failed(channel, status);
  if (channel.rma.reached.access != nullptr) channel.rma.reached.access->end(status);
  while (OutgoingRequest* request = channel.outgoing.front()) {
    ReadRequest* const read = request->kind == OutgoingRequest::Kind::queued_read
                                  ? static_cast<QueuedRead*>(request)->read
                                  : nullptr;
    outgoing_.complete(*request, status);
    if (read != nullptr) pulls_.complete(*read, status);
  }
  while (OutgoingRequest* response = channel.rma.responses.front()) outgoing_.complete(*response, status);
  while (IncomingRequest* request = channel.incoming.front()) pulls_.abandon(*request, status);
  if (channel.assembly.receive != nullptr) pulls_.complete(*channel.assembly.receive, status);
  matcher_.fail_messages(channel, status);
  matcher_.fail_directed(channel, status, directed);
  channel.tx.control.clear();
  channel.credit = {};
  channel.assembly = {};
  channel.incoming_write = {};
  channel.peer_closed = false;
  channel.carrier = nullptr;
  channel.memory = nullptr;
  channel.rma.reached = {};
  channel.rma.refused = 0;
  pulls_.reschedule();
}

}  // namespace cluster::protocol
