// A message goes out. The common case is one segment posted at once, with nothing remembered unless
// somebody waits for more than "the buffer is free"; everything else takes a request and its turn.
#include "protocol/messenger.h"

namespace cluster::protocol {
namespace {

std::uint8_t flags_of(bool tagged, bool has_data, bool confirm) {
  return static_cast<std::uint8_t>((tagged ? wire::segment_flag::kTagged : 0) |
                                   (has_data ? wire::segment_flag::kData : 0) |
                                   (confirm ? wire::segment_flag::kConfirm : 0));
}

/// Tokens name requests; the high bit keeps them apart from 0.
Token token_of(const SendRequest& request) { return Token{1} << 32 | request.id; }

/// Must the library hear of this message again before it is complete? Whoever is told that the buffer is free
/// has been told all; a message whose success is not told may still fail, which is.
bool waits(const Carrier& carrier, CompletionLevel completion_level, bool report) {
  if (completion_level == CompletionLevel::delivery) return true;
  return (completion_level == CompletionLevel::transmit || !report) && !carrier.immediate();
}

bool may_be_eager(const Channel& channel, std::size_t length) {
  return channel.allows_eager(length) && channel.charged + length + kMessageCharge <= channel.credit_limit;
}

}  // namespace

Status Messenger::send(Channel& channel, const SendOp& order) {
  Status outcome = Status::ok;
  const bool at_once =
      channel.waiting.empty() && !order.fence && !held_up(channel, SendRequest::Verb::message);
  if (at_once && may_be_eager(channel, order.length) && post_at_once(channel, order, outcome)) return outcome;
  return enqueue(channel, order);
}

/// True if the order is dealt with (`outcome` says how); false if it has to queue.
bool Messenger::post_at_once(Channel& channel, const SendOp& order, Status& outcome) {
  const bool confirm = order.completion_level == CompletionLevel::delivery;
  wire::Segment segment;
  segment.flags = flags_of(order.tagged, order.has_data, confirm);
  segment.length = static_cast<std::uint32_t>(order.length);
  segment.tag = order.tag;
  segment.data = order.data;
  Carrier& carrier = *channel.carrier;
  if (order.length > carrier.payload_max(segment)) return false;

  SendRequest* request = nullptr;
  Token token = 0;
  if (waits(carrier, order.completion_level, order.report)) {
    request = take_request(channel, order);
    if (request == nullptr) {
      outcome = Status::again;
      return true;
    }
    segment.id = request->id;
    if (!carrier.immediate()) token = token_of(*request);
  }
  if (!carrier.post(segment, {order.slices, 0, order.length}, PayloadMode::copy, token)) {
    if (request != nullptr) {
      channel.sends.remove(*request);
      sends_.release(*request);
    }
    return false;
  }
  channel.charged += order.length + kMessageCharge;
  ++counters_.eager_sent;
  counters_.bytes_sent += order.length;
  if (request == nullptr) {
    report_send(order);
  } else {
    request->posted = order.length;
    request->state = SendRequest::State::posted;
    request->tokens = token != 0 ? 1 : 0;
  }
  return true;
}

SendRequest* Messenger::take_request(Channel& channel, const SendOp& order) {
  if (tx_size_left() == 0) return nullptr;
  SendRequest* request = sends_.acquire();
  request->channel = &channel;
  request->context = order.context;
  request->length = order.length;
  request->tag = order.tag;
  request->data = order.data;
  request->completion_level = order.completion_level;
  request->tagged = order.tagged;
  request->has_data = order.has_data;
  request->report = order.report;
  request->fence = order.fence;
  channel.sends.push_back(*request);
  return request;
}

Status Messenger::enqueue(Channel& channel, const SendOp& order) {
  SendRequest* request = take_request(channel, order);
  if (request == nullptr) return Status::again;
  if (order.inject) {
    keep_injected(*request, {order.slices, 0, order.length});
  } else {
    request->slices.add(order.slices);
  }
  counters_.bytes_sent += order.length;
  channel.waiting.push_back(*request);
  if (channel.waiting.front() == request) advance(*request);
  if (channel.has_work()) mark_busy(channel);
  return Status::ok;
}

/// The bytes of an injected operation that has to queue: the caller's buffer is the caller's again.
void Messenger::keep_injected(SendRequest& request, const Gather& payload) {
  request.copy = std::make_unique_for_overwrite<std::byte[]>(payload.length);
  payload.copy_to(request.copy.get());
  request.slices.replace({request.copy.get(), payload.length});
  request.base = 0;
}

/// Is something under way that may not be overtaken? Only large writes, which are pulled, and reads, which
/// are answered when the target gets round to it, are ever under way in this sense: everything else takes
/// effect in the order in which the carrier brings it.
bool Messenger::held_up(const Channel& channel, SendRequest::Verb verb) const {
  using Verb = SendRequest::Verb;
  const Ordering& order = bindings_.ordering;
  const bool reads = verb == Verb::launch || verb == Verb::atomic;
  const bool writes = verb == Verb::put || verb == Verb::atomic;
  if (channel.puts_announced > 0) {
    if (verb == Verb::message) return true;
    if ((reads && order.read_after_write) || (writes && order.write_after_write)) return true;
  }
  if (channel.reads == 0) return false;
  return (verb == Verb::message && order.send_after_read) || (reads && order.read_after_read) ||
         (writes && order.write_after_read);
}

/// A fenced operation begins when all before it are complete; the last range of a write, by which the target
/// knows that it is whole, when the others have landed. Small ranges land in order anyway: only data, which
/// may not tell of a write that failed, waits for the word that they have.
bool Messenger::must_wait(const SendRequest& request) const {
  const Channel& channel = *request.channel;
  if (request.continues && !request.more) {
    if (request.has_data ? request.group->left > 1 : channel.puts_announced > 0) return true;
  }
  if (request.fence && (channel.sends.front() != &request || channel.reads > 0)) return true;
  if (request.verb == SendRequest::Verb::launch && channel.reads >= kReadsMax) return true;
  return held_up(channel, request.verb);
}

/// Gives the carrier what it takes of the request at the head of the queue. True if all of it went,
/// and it has left the queue.
bool Messenger::advance(SendRequest& request) {
  if (must_wait(request)) return false;
  if (request.verb == SendRequest::Verb::put) return advance_put(request);
  if (request.verb == SendRequest::Verb::atomic) return advance_atomic(request);
  if (request.verb == SendRequest::Verb::launch) {
    launch(request);
    return true;
  }
  Channel& channel = *request.channel;
  if (request.posted == 0 && !request.by_announcement) {
    request.by_announcement = !may_be_eager(channel, request.length);
  }
  if (!request.by_announcement) return advance_eager(request);
  wire::Segment segment;
  segment.kind = wire::SegmentKind::announce;
  segment.flags = flags_of(request.tagged, request.has_data, false);
  segment.id = request.id;
  segment.total = request.length;
  segment.tag = request.tag;
  segment.data = request.data;
  offer_memory(request, segment);
  if (!channel.carrier->post(segment, {}, PayloadMode::copy, 0)) return false;
  ++counters_.rendezvous_sent;
  channel.waiting.remove(request);
  request.state = SendRequest::State::announced;
  return true;
}

bool Messenger::advance_eager(SendRequest& request) {
  Channel& channel = *request.channel;
  Carrier& carrier = *channel.carrier;
  const bool confirm = request.completion_level == CompletionLevel::delivery;
  const bool wants_token = !carrier.immediate() && waits(carrier, request.completion_level, request.report);
  bool first = request.posted == 0;
  while (first || request.posted < request.length) {
    wire::Segment segment;
    segment.kind = first ? wire::SegmentKind::eager_first : wire::SegmentKind::eager_next;
    if (first) {
      segment.flags = flags_of(request.tagged, request.has_data, confirm);
      segment.id = request.id;
      segment.total = request.length;
      segment.tag = request.tag;
      segment.data = request.data;
    }
    const std::size_t left = request.length - request.posted;
    const std::size_t part = next_fragment(left, carrier, segment);
    if (first && part == left) {
      segment.kind = wire::SegmentKind::eager;
      segment.total = 0;
    }
    if (part == 0 && left > 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Token token = wants_token ? token_of(request) : 0;
    if (!carrier.post(segment, {request.payload(), request.posted, part}, PayloadMode::copy, token))
      return false;
    if (token != 0) ++request.tokens;
    if (first) {
      channel.charged += request.length + kMessageCharge;
      ++counters_.eager_sent;
    }
    request.posted += part;
    first = false;
  }
  channel.waiting.remove(request);
  request.state = SendRequest::State::posted;
  settle(request);
  return true;
}

/// Completes the request if nothing more is to be waited for.
void Messenger::settle(SendRequest& request) {
  if (request.state == SendRequest::State::queued || request.tokens > 0) return;
  const bool needs_done =
      request.state == SendRequest::State::announced || request.completion_level == CompletionLevel::delivery;
  if (needs_done && !request.done) return;
  complete(request, request.status);
}

}  // namespace cluster::protocol
