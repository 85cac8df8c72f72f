// Large messages. The sender announces, the receiver pulls as much at a time as its budget over all
// senders allows, the bytes land at their offset in whatever order they come, and `done` ends it.
// Many senders can so never overrun one receiver (Homa's and CLIC's argument), and nothing is copied
// but from the arrival to the user's buffer.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {

void Messenger::on_announce(Channel& channel, const wire::Segment& segment) {
  RecvRequest* receive = match(channel, segment.tagged(), segment.tag, segment.total);
  if (receive == nullptr) {
    UnexpectedMessage* message = store(channel, segment, segment.total);
    if (message == nullptr) return refuse();
    message->announced = true;
    message->source = segment.address;
    return;
  }
  receive->channel = &channel;
  receive->tag = segment.tag;
  receive->data = segment.data;
  receive->has_data = segment.has_data();
  receive->sender_id = segment.id;
  receive->total = segment.total;
  receive->source = segment.address;
  start_pulling(*receive);
}

void Messenger::start_pulling(RecvRequest& receive) {
  receive.wanted = std::min(receive.total, receive.capacity);
  if (receive.wanted == 0) {
    if (receive.verb == RecvRequest::Verb::message) confirm(*receive.channel, receive.sender_id);
    return complete(receive, Status::ok);
  }
  receive.end = receive.wanted;
  receive.channel->receives.push_back(receive);
  if (receive.verb == RecvRequest::Verb::get) ++receive.channel->reads;
  PullBudget& budget = budget_of(*receive.channel);
  budget.waiting.push_back(receive);
  begin_direct(receive);
  schedule_pulls(budget);
}

/// The next piece of it, in the words its sender understands. The piece of a read with which all of it has
/// been asked for is the one by which the target counts the read.
wire::Segment Messenger::pull_for(const RecvRequest& receive, std::size_t piece) {
  wire::Segment pull;
  pull.peer_id = receive.id;
  pull.total = piece;
  if (receive.verb == RecvRequest::Verb::get) {
    pull.kind = wire::SegmentKind::get;
    const bool ends = receive.requested + piece == receive.end &&
                      (receive.group == nullptr || --receive.group->unasked == 0);
    pull.flags =
        static_cast<std::uint8_t>(wire::segment_flag::kData | (ends ? 0 : wire::segment_flag::kMore));
    pull.key = receive.remote.key;
    pull.offset = receive.remote.address + receive.requested;
    pull.data = receive.requested;
  } else {
    pull.kind = wire::SegmentKind::pull;
    pull.id = receive.sender_id;
    pull.offset = receive.requested;
  }
  return pull;
}

PullBudget& Messenger::budget_of(const Channel& channel) {
  return channel.carrier != nullptr && channel.carrier->immediate() ? near_ : far_;
}

/// How much to ask for next; 0: enough is under way.
std::size_t Messenger::next_pull(const RecvRequest& receive, const PullBudget& budget) {
  if (receive.source != 0) return next_place(receive);
  return budget.may_pull(receive) ? std::min(budget.piece(), receive.end - receive.requested) : 0;
}

/// Hands the free budget out in turns, one pull per message and turn.
void Messenger::schedule_pulls(PullBudget& budget) {
  RecvRequest* receive = budget.waiting.front();
  while (receive != nullptr && budget.room()) {
    RecvRequest* next = budget.waiting.after(*receive);
    if (const std::size_t piece = next_pull(*receive, budget)) {
      wire::Segment pull = pull_for(*receive, piece);
      if (receive->source != 0) offer_place(*receive, pull);
      budget.pulled(*receive, piece);
      budget.waiting.remove(*receive);
      if (receive->requested < receive->end) {
        budget.waiting.push_back(*receive);
        if (next == nullptr) next = receive;
      }
      say(*receive->channel, pull);
    }
    receive = next;
  }
  if (receive != nullptr) budget.lacking();
}

void Messenger::on_pull(Channel& channel, const wire::Segment& segment) {
  SendRequest* request = sends_.find(segment.id);
  const bool known = request != nullptr && request->channel == &channel &&
                     request->state == SendRequest::State::announced && !request->done &&
                     request->verb != SendRequest::Verb::serve;
  const bool sane = known && segment.total > 0 && segment.offset <= request->length &&
                    segment.total <= request->length - segment.offset;
  const PullRange range{segment.offset, segment.offset + segment.total, segment.address};
  if (!sane || !request->asked_for(range)) return refuse();
  request->receiver_id = segment.peer_id;
  if (!channel.streaming.contains(*request)) channel.streaming.push_back(*request);
  mark_busy(channel);
}

/// Posts one pull's worth of the request at the head, then lets the next have its turn. False if
/// the carrier has no room.
bool Messenger::stream(SendRequest& request) {
  if (request.verb == SendRequest::Verb::serve) {
    return request.copy != nullptr ? serve_answer(request) : serve(request);
  }
  Channel& channel = *request.channel;
  Carrier& carrier = *channel.carrier;
  PullRange& range = request.pulls[0];
  if (range.address != 0 && place(request, range)) range.offset = range.end;
  range.address = 0;
  while (range.offset < range.end) {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.peer_id = request.receiver_id;
    segment.offset = range.offset;
    const std::size_t part = std::min<std::size_t>(range.end - range.offset, carrier.fragment_max(segment));
    if (part == 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Token token = carrier.immediate() ? 0 : Token{1} << 32 | request.id;
    if (!carrier.post(segment, {request.payload(), request.base + range.offset, part}, PayloadMode::reference,
                      token))
      return false;
    if (token != 0) ++request.tokens;
    range.offset += part;
    channel.streamed += part;
  }
  std::move(request.pulls.begin() + 1, request.pulls.begin() + request.pull_count, request.pulls.begin());
  --request.pull_count;
  channel.streaming.remove(request);
  if (request.pull_count > 0) channel.streaming.push_back(request);
  return true;
}

void Messenger::on_bulk(Channel& channel, const wire::Segment& segment, ConstBytes payload,
                        const ArrivalInfo& info) {
  RecvRequest* receive = receives_.find(segment.peer_id);
  const bool known =
      receive != nullptr && receive->channel == &channel && receive->requested > 0 && !payload.empty();
  const bool sane = known && segment.offset <= receive->requested &&
                    payload.size() <= receive->requested - segment.offset &&
                    payload.size() <= receive->requested - receive->arrived;
  if (!sane) return refuse();
  bool allowed = true;
  if (receive->verb == RecvRequest::Verb::land) {
    allowed = bindings_.regions->with(
        receive->remote.key, receive->remote.address + segment.offset, payload.size(), Access::write,
        [&](std::byte* target, const MemoryRegion&) { std::memcpy(target, payload.data(), payload.size()); });
  } else {
    scatter(receive->buffers(), receive->base + segment.offset, payload);
  }
  if (!allowed) {
    refuse_put(channel, receive->sender_id);
    abandon(*receive, Status::access);
    schedule_pulls(budget_of(channel));
  } else {
    account_for(*receive, segment.offset, payload.size(), info);
  }
}

/// So many of the bytes that were pulled are in place.
void Messenger::account_for(RecvRequest& receive, std::size_t offset, std::size_t bytes,
                            const ArrivalInfo& info) {
  PullBudget& budget = budget_of(*receive.channel);
  budget.arrived(receive, offset, bytes, info);
  if (receive.arrived + receive.fetched == receive.wanted) arrived_whole(receive);
  if (!budget.waiting.empty()) schedule_pulls(budget);
}

void Messenger::arrived_whole(RecvRequest& receive) {
  if (receive.verb == RecvRequest::Verb::land) {
    wire::Segment first;
    first.flags = static_cast<std::uint8_t>((receive.has_data ? wire::segment_flag::kData : 0) |
                                            (receive.last ? 0 : wire::segment_flag::kMore));
    first.key = receive.remote.key;
    first.offset = receive.remote.address;
    first.total = receive.total;
    first.data = receive.data;
    landed(*receive.channel, first, receive.remote.length);
  }
  if (receive.verb != RecvRequest::Verb::get) confirm(*receive.channel, receive.sender_id);
  complete(receive, Status::ok);
}

/// What was to be pulled will not come.
void Messenger::abandon(RecvRequest& receive, Status status) {
  PullBudget& budget = budget_of(*receive.channel);
  budget.given_up(*receive.channel, receive.requested - receive.arrived);
  if (budget.waiting.contains(receive)) budget.waiting.remove(receive);
  complete(receive, status);
}

/// The turn of a remote read has come.
void Messenger::launch(SendRequest& turn) {
  RecvRequest* receive = receives_.find(turn.receiver_id);
  complete(turn, Status::ok);
  start_pulling(*receive);
}

void Messenger::on_done(Channel& channel, const wire::Segment& segment) {
  SendRequest* request = sends_.find(segment.id);
  using Verb = SendRequest::Verb;
  const bool known = request != nullptr && request->channel == &channel && !request->done;
  if (known && request->verb == Verb::atomic && request->tokens > 0) return answered(*request, Status::ok);
  const bool lawful = known && (request->verb == Verb::message || request->verb == Verb::put) &&
                      request->state != SendRequest::State::queued;
  if (!lawful) return refuse();
  finish(*request);
}

/// The peer is done with it, one way or the other.
void Messenger::finish(SendRequest& request) {
  request.done = true;
  if (request.channel->streaming.contains(request)) {
    request.channel->streaming.remove(request);
    request.pull_count = 0;
  }
  settle(request);
}

}  // namespace cluster::protocol
