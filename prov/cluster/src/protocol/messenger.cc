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
      sends_(settings.send_requests_max),
      receives_(kNoLimit),
      messages_(kNoLimit) {}

void Messenger::arrive(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  using wire::SegmentKind;
  switch (segment.kind) {
    case SegmentKind::eager:
    case SegmentKind::eager_first: return on_eager(channel, segment, payload);
    case SegmentKind::eager_next: return on_eager_next(channel, payload);
    case SegmentKind::announce: return on_announce(channel, segment);
    case SegmentKind::pull: return on_pull(channel, segment);
    case SegmentKind::bulk: return on_bulk(channel, segment, payload);
    case SegmentKind::done: return on_done(channel, segment);
    case SegmentKind::credit: return on_credit(channel, segment);
    case SegmentKind::farewell: channel.farewell = true; return;
  }
  refuse();
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
}

/// One turn for one channel; true if nothing is left to do. Answers go before new messages: they
/// free memory and requests on both sides.
bool Messenger::pump(Channel& channel) {
  if (channel.carrier == nullptr) return true;
  while (!channel.control.empty()) {
    if (!channel.carrier->post(channel.control.front(), {}, Hold::copy, 0)) return false;
    channel.control.pop_front();
  }
  while (SendRequest* request = channel.waiting.front()) {
    if (!advance(*request)) break;
  }
  while (SendRequest* request = channel.streaming.front()) {
    if (!stream(*request)) break;
  }
  return !channel.has_work();
}

void Messenger::mark_busy(Channel& channel) {
  if (channel.busy) return;
  channel.busy = true;
  busy_.push_back(&channel);
}

void Messenger::say(Channel& channel, const wire::Segment& segment) {
  if (channel.carrier == nullptr) return;  // lost: nobody to tell, nothing that waits for it
  if (!channel.spoken && !channel.carrier->immediate()) {
    channel.spoken = true;
    spoken_.push_back(&channel);
  }
  if (channel.control.empty() && channel.carrier->post(segment, {}, Hold::copy, 0)) return;
  channel.control.push_back(segment);
  mark_busy(channel);
}

void Messenger::confirm(Channel& channel, std::uint32_t id) {
  wire::Segment segment;
  segment.kind = wire::SegmentKind::done;
  segment.id = id;
  say(channel, segment);
}

void Messenger::complete(SendRequest& request, Fault fault) {
  if (sinks_.send_counter != nullptr) sinks_.send_counter->count(fault);
  if (sinks_.sends != nullptr && (request.report || fault != Fault::none)) {
    Completion completion;
    completion.context = request.context;
    completion.tagged = request.tagged;
    completion.fault = fault;
    completion.tag = request.tag;
    if (fault != Fault::none) completion.peer = request.channel->name;
    sinks_.sends->push(completion);
  }
  Channel& channel = *request.channel;
  if (channel.waiting.contains(request)) {
    (request.state == SendRequest::State::announced ? channel.streaming : channel.waiting).remove(request);
  }
  channel.sends.remove(request);
  request.copy.reset();
  sends_.give_back(request);
}

void Messenger::report_send(const SendOrder& order) {
  if (sinks_.send_counter != nullptr) sinks_.send_counter->count(Fault::none);
  if (!order.report || sinks_.sends == nullptr) return;
  Completion completion;
  completion.context = order.context;
  completion.tagged = order.tagged;
  completion.tag = order.tag;
  sinks_.sends->push(completion);
}

void Messenger::complete(ReceiveRequest& receive, Fault fault) {
  if (fault == Fault::none && receive.total > receive.capacity) fault = Fault::truncated;
  const bool got_message = fault == Fault::none || fault == Fault::truncated;
  if (sinks_.receive_counter != nullptr) sinks_.receive_counter->count(fault);
  if (sinks_.receives != nullptr && (receive.report || fault != Fault::none)) {
    Completion completion;
    completion.context = receive.context;
    completion.kind = Completion::Kind::receive;
    completion.tagged = receive.tagged;
    completion.has_data = receive.has_data;
    completion.fault = fault;
    completion.tag = receive.tag;
    completion.data = receive.data;
    completion.buffer = receive.first_byte();
    if (got_message) {
      completion.length = receive.total < receive.capacity ? receive.total : receive.capacity;
      completion.lost = receive.total - completion.length;
    }
    const Channel* channel = receive.channel != nullptr ? receive.channel : receive.from;
    if (fault != Fault::none && channel != nullptr) completion.peer = channel->name;
    if (sinks_.want_source && receive.channel != nullptr) {
      completion.source = directory_.handle_of(*receive.channel);
    }
    sinks_.receives->push(completion);
  }
  if (got_message) counters_.bytes_received += receive.total;
  if (receive.channel != nullptr && receive.channel->receives.contains(receive)) {
    receive.channel->receives.remove(receive);
  }
  receives_.give_back(receive);
}

void Messenger::drop(Unexpected& message) {
  queue(message.tagged).drop(message);
  message.channel->unexpected.remove(message);
  message.bytes.reset();
  messages_.give_back(message);
}

void Messenger::fail(Channel& channel, Fault fault, bool directed) {
  while (SendRequest* request = channel.sends.front()) complete(*request, fault);
  while (ReceiveRequest* receive = channel.receives.front()) {
    pulled_out_ -= receive->requested - receive->arrived;
    if (pulling_.contains(*receive)) pulling_.remove(*receive);
    complete(*receive, fault);
  }
  if (channel.assembling != nullptr) complete(*channel.assembling, fault);
  for (Unexpected* message = channel.unexpected.front(); message != nullptr;) {
    Unexpected* next = channel.unexpected.after(*message);
    message->charge = 0;
    message->confirm = false;
    if (message->taker != nullptr) complete(*message->taker, fault);
    if (message->announced || message->arrived < message->total) drop(*message);
    message = next;
  }
  if (directed) {
    for (MatchQueue* queue : {&tagged_, &untagged_}) {
      while (ReceiveRequest* receive = queue->find_directed(&channel)) {
        queue->withdraw(*receive);
        complete(*receive, fault);
      }
    }
  }
  channel.control.clear();
  channel.charged = channel.charged_by_peer = channel.released = 0;
  channel.credit_limit = channel.credit_given = kFirstCredit;
  channel.assembling = nullptr;
  channel.assembling_unexpected = nullptr;
  channel.farewell = false;
  channel.carrier = nullptr;
  schedule_pulls();
}

}  // namespace cluster::protocol
