#include "protocol/messenger.h"

#include <limits>

namespace cluster::protocol {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace

Messenger::Messenger(const MessengerSettings& settings, Counters& counters, Directory& directory)
    : settings_(settings),
      counters_(counters),
      directory_(directory),
      sends_(kNoLimit),
      receives_(kNoLimit),
      messages_(settings.unexpected_hard_max),
      groups_(kNoLimit),
      atomics_(kNoLimit),
      far_(settings.pull_window, PullBudget::Size::found),
      near_(settings.pull_window, PullBudget::Size::fixed) {}

void Messenger::arrive(Channel& channel, const wire::Segment& segment, ConstBytes payload,
                       const ArrivalInfo& info) {
  using wire::SegmentKind;
  switch (segment.kind) {
    case SegmentKind::eager:
    case SegmentKind::eager_first: return on_eager(channel, segment, payload);
    case SegmentKind::eager_next: return on_eager_next(channel, payload);
    case SegmentKind::announce: return on_announce(channel, segment);
    case SegmentKind::pull: return on_pull(channel, segment);
    case SegmentKind::bulk: return on_bulk(channel, segment, payload, info);
    case SegmentKind::done: return on_done(channel, segment);
    case SegmentKind::credit: return on_credit(channel, segment);
    case SegmentKind::put: return on_put(channel, segment, payload);
    case SegmentKind::put_next: return on_put_next(channel, payload);
    case SegmentKind::put_announce: return on_put_announce(channel, segment);
    case SegmentKind::get: return on_get(channel, segment);
    case SegmentKind::failed: return on_failed(channel, segment);
    case SegmentKind::get_failed: return on_get_failed(channel, segment);
    case SegmentKind::placed: return on_placed(channel, segment, info);
    case SegmentKind::atomic: return on_atomic(channel, segment, payload);
    case SegmentKind::fetched: return on_fetched(channel, segment, payload);
    case SegmentKind::padding: return;
    case SegmentKind::farewell: channel.farewell = true; return;
  }  // no other kind passes wire::decode()
}

void Messenger::delivered(Token token) {
  SendRequest* request = sends_.find(static_cast<std::uint32_t>(token));
  if (request == nullptr) return;  // its channel failed meanwhile
  --request->tokens;
  settle(*request);
}

void Messenger::pump() {
  std::size_t kept = 0;
  // pump(channel) may add channels at the end (a completed pull starts the next one).
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    Channel* channel = busy_[i];
    channel->busy = !pump(*channel);
    if (channel->busy) busy_[kept++] = channel;
  }
  busy_.resize(kept);
  if (!direct_.empty()) fetch();
}

/// One turn for one channel; true if nothing is left to do. Answers go before new messages: they
/// free memory and requests on both sides.
bool Messenger::pump(Channel& channel) {
  if (channel.carrier == nullptr) return true;
  while (!channel.control.empty()) {
    if (!channel.carrier->post(channel.control.front(), {}, PayloadMode::copy, 0)) return false;
    channel.control.pop_front();
  }
  take_turns(channel);
  return !channel.has_work();
}

/// Messages go before what peers have asked for, since they are short; long ones in turn with it, or whoever
/// sends them without end would let nothing else through.
void Messenger::take_turns(Channel& channel) {
  bool messages_go = true;
  bool bulk_goes = true;
  for (;;) {
    SendRequest* message = messages_go ? channel.waiting.front() : nullptr;
    SendRequest* bulk = bulk_goes ? channel.streaming.front() : nullptr;
    if (message == nullptr && bulk == nullptr) return;
    const bool yields = bulk != nullptr && channel.bulk_next && message != nullptr && message->posted == 0 &&
                        message->length > kAlwaysEager;
    if (message == nullptr || yields) {
      const std::size_t before = channel.streamed;
      bulk_goes = stream(*bulk);
      if (channel.streamed != before) channel.bulk_next = false;
    } else {
      messages_go = advance(*message);
      channel.bulk_next |= messages_go;
    }
  }
}

void Messenger::mark_busy(Channel& channel) {
  if (channel.busy) return;
  channel.busy = true;
  busy_.push_back(&channel);
}

void Messenger::say(Channel& channel, const wire::Segment& segment) {
  if (channel.carrier == nullptr) return;  // lost: nobody to tell, nothing that waits for it
  speak(channel);
  if (channel.control.empty() && channel.carrier->post(segment, {}, PayloadMode::copy, 0)) return;
  if (channel.control.size() >= kControlMax) return refuse();  // no honest peer causes so many answers
  channel.control.push_back(segment);
  mark_busy(channel);
}

/// Notes that something has been posted outside send() and pump().
void Messenger::speak(Channel& channel) {
  if (channel.spoken || channel.carrier->immediate()) return;
  channel.spoken = true;
  spoken_.push_back(&channel);
}

void Messenger::confirm(Channel& channel, std::uint32_t id) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::done;
  segment.id = id;
  say(channel, segment);
}

void Messenger::complete(SendRequest& request, Status status) {
  using Verb = SendRequest::Verb;
  Channel& channel = *request.channel;
  const bool listed = channel.waiting.contains(request);
  if (listed)
    (request.state == SendRequest::State::queued && request.verb != Verb::serve ? channel.waiting
                                                                                : channel.streaming)
        .remove(request);
  if (request.verb == Verb::serve) {
    channel.serving.remove(request);
    --channel.serves;
    --serves_;
  } else {
    channel.sends.remove(request);
  }
  if (request.verb == Verb::put && request.state == SendRequest::State::announced) --channel.puts_announced;
  if (request.verb == Verb::message) report_message(request, status);
  if (request.verb == Verb::atomic) {
    const bool fetch = request.atomic->code.fetch;
    channel.atomic_parts -= request.tokens;
    atomics_.release(*request.atomic);
    report(fetch ? Completion::Kind::fetch : Completion::Kind::atomic, request.group, request.context,
           request.report, status, channel.name);
  }
  if (request.verb == Verb::put) {
    report(Completion::Kind::write, request.group, request.context, request.report, status, channel.name);
  }
  RecvRequest* reader =
      request.verb == Verb::launch && status != Status::ok ? receives_.find(request.receiver_id) : nullptr;
  request.copy.reset();
  sends_.release(request);
  if (reader != nullptr) complete(*reader, status);
}

void Messenger::report_message(const SendRequest& request, Status status) {
  if (bindings_.send_counter != nullptr) bindings_.send_counter->count(status);
  if (bindings_.sends == nullptr || (!request.report && status == Status::ok)) return;
  Completion completion;
  completion.context = request.context;
  completion.tagged = request.tagged;
  completion.status = status;
  completion.tag = request.tag;
  if (status != Status::ok) completion.peer = request.channel->name;
  bindings_.sends->push(completion);
}

/// Remote reads, writes and atomics of this side: one outcome an operation, however many ranges it had.
void Messenger::report(Completion::Kind kind, RmaGroup* group, void* context, bool wanted, Status status,
                       const SocketAddress& peer) {
  if (group != nullptr) {
    if (group->status == Status::ok) group->status = status;
    if (--group->left > 0) return;
    context = group->context;
    wanted = group->report;
    status = group->status;
    groups_.release(*group);
  }
  const bool reads = kind == Completion::Kind::read || kind == Completion::Kind::fetch;
  Counter* counter = reads ? bindings_.read_counter : bindings_.write_counter;
  if (counter != nullptr) counter->count(status);
  if (bindings_.sends == nullptr || (!wanted && status == Status::ok)) return;
  Completion completion;
  completion.context = context;
  completion.kind = kind;
  completion.status = status;
  if (status != Status::ok) completion.peer = peer;
  bindings_.sends->push(completion);
}

void Messenger::report_send(const SendOp& order) {
  if (bindings_.send_counter != nullptr) bindings_.send_counter->count(Status::ok);
  if (!order.report || bindings_.sends == nullptr) return;
  Completion completion;
  completion.context = order.context;
  completion.tagged = order.tagged;
  completion.tag = order.tag;
  bindings_.sends->push(completion);
}

void Messenger::complete(RecvRequest& receive, Status status) {
  if (receive.min_multi_recv != 0) return close_buffer(receive, status);
  if (receive.channel != nullptr && receive.channel->receives.contains(receive)) {
    receive.channel->receives.remove(receive);
    if (receive.verb == RecvRequest::Verb::get) --receive.channel->reads;
    if (receive.verb == RecvRequest::Verb::land) --receive.channel->lands;
  }
  if (direct_.contains(receive)) direct_.remove(receive);
  if (receive.buffer != nullptr) {
    end_piece(receive, status);
  } else if (receive.verb == RecvRequest::Verb::message) {
    report_message(receive, status);
  } else if (receive.verb == RecvRequest::Verb::get) {
    report(Completion::Kind::read, receive.group, receive.context, receive.report, status,
           receive.channel->name);
  }
  receives_.release(receive);
}

void Messenger::report_message(const RecvRequest& receive, Status status) {
  if (status == Status::ok && receive.total > receive.capacity) status = Status::truncated;
  const bool got_message = status == Status::ok || status == Status::truncated;
  const std::uint64_t source = bindings_.want_source && receive.channel != nullptr
                                   ? directory_.handle_of(*receive.channel)
                                   : kAddrNotAvail;
  if (bindings_.receive_counter != nullptr) bindings_.receive_counter->count(status);
  if (bindings_.receives != nullptr && (receive.report || status != Status::ok)) {
    Completion completion;
    completion.context = receive.context;
    completion.kind = Completion::Kind::receive;
    completion.tagged = receive.tagged;
    completion.has_data = receive.has_data;
    const bool stranger = bindings_.report_unknown_source && status == Status::ok && source == kAddrNotAvail;
    completion.status = stranger ? Status::unknown_source : status;
    completion.releases_buffer = receive.last;
    completion.source = source;
    completion.tag = receive.tag;
    completion.data = receive.data;
    completion.buffer = receive.first_byte();
    if (got_message) {
      completion.length = receive.total < receive.capacity ? receive.total : receive.capacity;
      completion.lost = receive.total - completion.length;
    }
    const Channel* channel = receive.channel != nullptr ? receive.channel : receive.from;
    if (completion.status != Status::ok && channel != nullptr) completion.peer = channel->name;
    bindings_.receives->push(completion);
  }
  if (got_message) counters_.bytes_received += receive.total;
}

void Messenger::drop(UnexpectedMessage& message) {
  queue(message.tagged).drop(message);
  message.channel->unexpected.remove(message);
  --message.channel->stored;
  if (message.bytes != nullptr) unexpected_bytes_ -= message.total;
  message.bytes.reset();
  messages_.release(message);
  note_store();
}

bool Messenger::references(const Channel& channel) const {
  return !channel.sends.empty() || !channel.receives.empty() || !channel.serving.empty() ||
         !channel.unexpected.empty() || channel.busy || channel.spoken ||
         tagged_.find_directed(&channel) != nullptr || untagged_.find_directed(&channel) != nullptr;
}

void Messenger::fail(Channel& channel, Status status, bool directed) {
  while (SendRequest* request = channel.sends.front()) complete(*request, status);
  while (SendRequest* request = channel.serving.front()) complete(*request, status);
  while (RecvRequest* receive = channel.receives.front()) abandon(*receive, status);
  if (channel.assembling != nullptr) complete(*channel.assembling, status);
  for (UnexpectedMessage* message = channel.unexpected.front(); message != nullptr;) {
    UnexpectedMessage* next = channel.unexpected.after(*message);
    message->charge = 0;
    message->confirm = false;
    if (message->taker != nullptr) complete(*message->taker, status);
    if (message->announced || message->arrived < message->total) drop(*message);
    message = next;
  }
  if (directed) {
    for (MatchQueue* queue : {&tagged_, &untagged_}) {
      while (RecvRequest* receive = queue->find_directed(&channel)) {
        queue->withdraw(*receive);
        complete(*receive, status);
      }
    }
  }
  channel.control.clear();
  channel.charged = channel.charged_by_peer = channel.released = 0;
  channel.credit_limit = channel.credit_given = kInitialCredit;
  channel.assembling = nullptr;
  channel.assembling_unexpected = nullptr;
  channel.landing = {};
  channel.ranges_length = 0;
  channel.farewell = false;
  channel.carrier = nullptr;
  channel.memory = nullptr;
  schedule_pulls(far_);
  schedule_pulls(near_);
}

}  // namespace cluster::protocol
