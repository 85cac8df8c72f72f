#include "protocol/channel_sender.h"

namespace cluster::protocol {

Status ChannelSender::enqueue(Channel& channel, const SendOp& op) {
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

/// Control goes first: it frees memory and requests on both sides.
bool ChannelSender::pump(Channel& channel) {
  if (channel.carrier == nullptr) return true;
  if (!ControlSender::flush(channel)) return false;
  take_turns(channel);
  return channel.tx.empty();
}

/// Operations go before bulk, since they are short; long ones take turns with it, or an endless stream of
/// them would let no bulk through.
void ChannelSender::take_turns(Channel& channel) {
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

/// Posts what the carrier takes of the request at the head of the ordered queue. True if that is all, and it
/// has left the queue.
bool ChannelSender::advance(OutgoingRequest& request) {
  using Kind = OutgoingRequest::Kind;
  if (outgoing_.must_wait(request)) return false;
  switch (request.kind) {
    case Kind::message: return advance_message(static_cast<SendRequest&>(request));
    case Kind::write: return writes_.advance(static_cast<WriteRequest&>(request));
    case Kind::atomic: return atomics_.advance(static_cast<AtomicRequest&>(request));
    case Kind::queued_read: reads_.start(static_cast<QueuedRead&>(request)); return true;
    case Kind::read_response:
    case Kind::atomic_response: break;  // bulk
  }
  return false;
}

bool ChannelSender::advance_message(SendRequest& request) {
  if (request.posted == 0 && !request.rendezvous) {
    request.rendezvous = !EagerProtocol::eligible(*request.channel, request.length, request.completion_level);
  }
  return request.rendezvous ? rendezvous_.announce(request) : eager_.advance(request);
}

/// Posts bulk of the request at the head of its queue. False if the carrier has no free bytes.
bool ChannelSender::stream(OutgoingRequest& request) {
  using Kind = OutgoingRequest::Kind;
  if (request.kind == Kind::read_response) return reads_.stream(static_cast<ReadResponse&>(request));
  if (request.kind == Kind::atomic_response) return atomics_.stream(static_cast<AtomicResponse&>(request));
  return rendezvous_.stream(static_cast<PulledRequest&>(request));
}

}  // namespace cluster::protocol
