#include "protocol/messenger.h"

#include <algorithm>

namespace cluster::protocol {
namespace {

/// The number of datagrams that may wait for a receive.
constexpr std::size_t kDatagramsMax = 256;

}  // namespace

Messenger::Messenger(const MessengerSettings& settings, Counters& counters, AddressHandles& handles)
    : context_{settings, counters, handles},
      reporter_(context_),
      control_(context_),
      outgoing_(context_, reporter_),
      pulls_(context_, control_, reporter_),
      matcher_(context_, control_, reporter_, pulls_) {}

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
    case SegmentKind::credit: return channel.credit.raise(segment.total);
    case SegmentKind::write: return rma_target_.on_write(channel, segment, payload);
    case SegmentKind::write_next: return rma_target_.on_write_next(channel, payload);
    case SegmentKind::write_announce: return rma_target_.on_announce(channel, segment);
    case SegmentKind::read: return rma_target_.on_read(channel, segment);
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
    case SegmentKind::expose: return rendezvous_.on_expose(channel, segment);
    case SegmentKind::exposed: return pulls_.on_exposed(channel, segment);
    case SegmentKind::expose_region: return rma_target_.on_expose(channel, segment);
    case SegmentKind::device_over: return rma_target_.on_device_over(channel, segment);
    case SegmentKind::queue_pair:
      if (channel.reads != nullptr) channel.reads->on_queue_pair(segment);
      return;
    case SegmentKind::new_queue_pair: return;  // the network has processed it
    case SegmentKind::close: channel.peer_closed = true; return;
  }  // wire::decode() lets no other kind pass
}

void Messenger::arrive_run(Channel& channel, const wire::RunView& run, const ArrivalInfo& info) {
  if (run.segment.kind == wire::SegmentKind::bulk) return pulls_.on_bulk_run(channel, run, info);
  if (run.stored) return eager_.on_stored(channel, run.size());
  for (std::size_t i = 0; i < run.count; ++i) eager_.on_next(channel, run.payload(i));
}

void Messenger::datagram_sent(const SendOp& op) {
  ++context_.counters.datagrams_sent;
  context_.counters.bytes_sent += op.length;
  reporter_.sent(op);
}

void Messenger::arrive_datagram(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  if (segment.kind != wire::SegmentKind::eager || segment.tagged() || segment.confirm() ||
      segment.internal()) {
    return context_.refuse_segment();
  }
  const MessageHeader header = header_of(segment, payload.size());
  if (RecvRequest* receive = matcher_.match(channel, segment, header.total)) {
    receive->matched(channel, header);
    scatter(receive->buffers(), 0, payload);
    return pulls_.complete(*receive, Status::ok);
  }
  UnexpectedMessage* const message =
      matcher_.stored() < kDatagramsMax ? matcher_.store(channel, header, payload.size(), payload) : nullptr;
  if (message == nullptr) ++context_.counters.datagrams_dropped;
}

/// Called when the peer has answered a request of this side. If `status` is not Status::ok, the request has
/// failed or the peer refuses it.
void Messenger::on_answer(Channel& channel, const wire::Segment& segment, Status status) {
  using Kind = OutgoingRequest::Kind;
  OutgoingRequest* const request = outgoing_.find(channel, segment.id);
  if (request == nullptr) return context_.refuse_segment();
  if (request->kind == Kind::atomic && request->unanswered > 0) {
    return atomics_.answered(static_cast<AtomicRequest&>(*request), status);
  }
  const bool may_fail = request->kind != Kind::message || static_cast<SendRequest*>(request)->internal;
  const bool answerable =
      (request->kind == Kind::write || request->kind == Kind::message) && (status == Status::ok || may_fail);
  const bool valid = answerable && request->state != OutgoingRequest::State::queued &&
                     request->state != OutgoingRequest::State::submitted &&
                     !static_cast<PulledRequest&>(*request).done;
  if (!valid) return context_.refuse_segment();
  request->status = request->kind == Kind::message && status != Status::ok ? Status::refused : status;
  outgoing_.finish(static_cast<PulledRequest&>(*request));
}

Status Messenger::enqueue(Channel& channel, const SendOp& op) {
  if (outgoing_.left() == 0) return Status::again;
  SendRequest& request = outgoing_.acquire_message(channel, op);
  if (!op.inject) {
    request.slices.add(op.slices, op.handles);
  } else if (!outgoing_.keep_copy(request, {op.slices, 0, op.length, op.handles})) {
    return Status::ok;
  }
  context_.counters.bytes_sent += op.length;
  if (outgoing_.enqueue(request)) advance_message(request);
  if (!channel.tx.empty()) control_.mark_busy(channel);
  return Status::ok;
}

/// Posts the segments that wait on the channel. Control segments go first, because they free memory and
/// requests on both sides.
bool Messenger::pump(Channel& channel) {
  if (channel.carrier == nullptr) return true;
  if (!ControlSender::flush(channel)) return false;
  take_turns(channel);
  return channel.tx.empty();
}

/// Posts ordered requests before bulk requests, because most ordered requests are short. Long ordered
/// requests alternate with bulk requests. Otherwise an endless series of long ordered requests would block
/// the bulk requests forever.
void Messenger::take_turns(Channel& channel) {
  TxQueues& tx = channel.tx;
  bool ordered_goes = true;
  bool bulk_goes = true;
  for (;;) {
    OutgoingRequest* const ordered = ordered_goes ? tx.ordered.front() : nullptr;
    OutgoingRequest* const bulk = bulk_goes ? tx.bulk.front() : nullptr;
    if (ordered == nullptr && bulk == nullptr) return;
    const bool yields = bulk != nullptr && tx.bulk_next && ordered != nullptr && ordered->posted == 0 &&
                        ordered->length > kAlwaysEager;
    if (ordered == nullptr || yields) {
      const std::size_t before = tx.bulk_bytes;
      bulk_goes = stream(*bulk);
      if (tx.bulk_bytes != before) tx.bulk_next = false;
    } else {
      ordered_goes = advance(*ordered);
      tx.bulk_next |= ordered_goes;
    }
  }
}

/// Posts as much of the request as the carrier takes. The request must be at the head of the ordered queue.
/// Returns true if the request has left the queue.
bool Messenger::advance(OutgoingRequest& request) {
  using Kind = OutgoingRequest::Kind;
  if (outgoing_.must_wait(request)) return false;
  switch (request.kind) {
    case Kind::message: return advance_message(static_cast<SendRequest&>(request));
    case Kind::write: return rma_.advance(static_cast<WriteRequest&>(request));
    case Kind::atomic: return atomics_.advance(static_cast<AtomicRequest&>(request));
    case Kind::queued_read: rma_.start(static_cast<QueuedRead&>(request)); return true;
    case Kind::read_response:
    case Kind::atomic_response:
    case Kind::read_grant: break;  // never in this queue
  }
  return false;
}

bool Messenger::advance_message(SendRequest& request) {
  if (request.posted == 0 && !request.rendezvous) {
    request.rendezvous = !EagerProtocol::eligible(*request.channel, request.length, request.completion_level);
  }
  return request.rendezvous ? rendezvous_.announce(request) : eager_.advance(request);
}

/// Posts bytes of the request, which must be at the head of the bulk queue. Returns false if the carrier has
/// no space.
bool Messenger::stream(OutgoingRequest& request) {
  using Kind = OutgoingRequest::Kind;
  if (request.kind == Kind::read_response) return rma_target_.stream(static_cast<ReadResponse&>(request));
  if (request.kind == Kind::atomic_response) return atomics_.stream(static_cast<AtomicResponse&>(request));
  return rendezvous_.stream(static_cast<PulledRequest&>(request));
}

void Messenger::pump() {
  control_.pump_busy([this](Channel& channel) { return pump(channel); });
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
