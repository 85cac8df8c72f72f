#include "protocol/eager_protocol.h"

#include "base/bytes.h"

namespace cluster::protocol {
namespace {

/// Returns true if the message needs a request after the carrier has taken it. A message needs a request if
/// it is not complete by then. A message whose success is not reported also needs a request if it can still
/// fail, because this side would have to report the failure.
bool must_remember(const Carrier& carrier, CompletionLevel level, bool report) {
  if (level == CompletionLevel::delivery) return true;
  return (level == CompletionLevel::transmit || !report) && !carrier.traits().acknowledges_on_post;
}

template <typename Message>
std::uint8_t flags_of(const Message& message, CompletionLevel level) {
  return static_cast<std::uint8_t>(message_flags(message) |
                                   (level == CompletionLevel::delivery ? wire::segment_flag::kConfirm : 0));
}

}  // namespace

bool EagerProtocol::post_now(Channel& channel, const SendOp& op, Status& status) {
  if (!channel.tx.ordered.empty() || op.fence || outgoing_.blocked(channel, OutgoingRequest::Kind::message) ||
      !eligible(channel, op.length, op.completion_level))
    return false;
  wire::Segment segment;
  segment.flags = flags_of(op, op.completion_level);
  segment.length = static_cast<std::uint32_t>(op.length);
  segment.tag = op.tag;
  segment.data = op.data;
  Carrier& carrier = *channel.carrier;
  if (op.length > carrier.payload_max(segment)) return false;

  SendRequest* request = nullptr;
  Token token = 0;
  if (must_remember(carrier, op.completion_level, op.report)) {
    if (outgoing_.left() == 0) {
      status = Status::again;
      return true;
    }
    request = &outgoing_.acquire_message(channel, op);
    segment.id = request->id;
    if (!carrier.traits().acknowledges_on_post) token = OutgoingRequests::token_of(*request);
  }
  if (!carrier.post(segment, {op.slices, 0, op.length, op.handles}, PayloadMode::copy, token)) {
    if (request != nullptr) outgoing_.withdraw(*request);
    return false;
  }
  channel.credit.charge(op.length);
  ++context_.counters.eager_sent;
  context_.counters.bytes_sent += op.length;
  if (request == nullptr) {
    reporter_.sent(op);
  } else {
    request->posted = op.length;
    request->state = OutgoingRequest::State::posted;
    request->unanswered = token != 0 ? 1 : 0;
  }
  status = Status::ok;
  return true;
}

bool EagerProtocol::advance(SendRequest& request) {
  Channel& channel = *request.channel;
  Carrier& carrier = *channel.carrier;
  const bool wants_token = !carrier.traits().acknowledges_on_post &&
                           must_remember(carrier, request.completion_level, request.report);
  bool first = request.posted == 0;
  while (first || request.posted < request.length) {
    wire::Segment segment{.kind = first ? wire::SegmentKind::eager_first : wire::SegmentKind::eager_next};
    if (first) {
      segment.flags = flags_of(request, request.completion_level);
      segment.id = request.id;
      segment.total = request.length;
      segment.tag = request.tag;
      segment.data = request.data;
    }
    const std::size_t left = request.length - request.posted;
    if (!first && wants_token && left > carrier.payload_max(segment)) {
      const Gather rest = request.bytes(request.posted, left);
      const std::size_t taken = carrier.post_run(segment, rest, OutgoingRequests::token_of(request));
      if (taken == 0) return false;
      ++request.unanswered;
      request.posted += taken;
      continue;
    }
    const std::size_t part = next_fragment(left, carrier, segment);
    if (first && part == left) {
      segment.kind = wire::SegmentKind::eager;
      segment.total = 0;
    }
    if (part == 0 && left > 0) return false;
    segment.length = static_cast<std::uint32_t>(part);
    const Token token = wants_token ? OutgoingRequests::token_of(request) : 0;
    if (!carrier.post(segment, request.bytes(request.posted, part), PayloadMode::copy, token)) return false;
    if (token != 0) ++request.unanswered;
    if (first) {
      channel.credit.charge(request.length);
      ++context_.counters.eager_sent;
    }
    request.posted += part;
    first = false;
  }
  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);
  outgoing_.settle(request);
  return true;
}

void EagerProtocol::on_first(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  const bool whole = segment.kind == wire::SegmentKind::eager;
  const std::uint64_t total = whole ? payload.size() : segment.total;
  // No correct sender begins a message inside another one, or charges more than it was granted.
  if (channel.assembly.active() || total < payload.size() || !channel.credit.allows(total)) {
    return context_.refuse_segment();
  }
  Assembly assembly = matcher_.begin(channel, segment, total, Credit::charge_of(total));
  if (!assembly.active()) return context_.refuse_segment();
  channel.credit.accept(total);
  assembly.append(payload);
  if (RecvRequest* const receive = assembly.receive;
      whole && receive != nullptr && !receive->confirm && receive->buffer == nullptr) [[likely]] {
    reporter_.received(*receive, Status::ok);
    pulls_.pool().release(*receive);
    // release() comes last: if there is no memory for the credit segment, the peer is lost, and the message
    // must have been reported before.
    return control_.release(channel, Credit::charge_of(total));
  }
  channel.assembly = assembly;
  if (assembly.complete()) assembled(channel);
}

void EagerProtocol::on_next(Channel& channel, ConstBytes payload) {
  Assembly& assembly = channel.assembly;
  if (!assembly.active() || !assembly.append(payload)) return context_.refuse_segment();
  if (assembly.complete()) assembled(channel);
}

void EagerProtocol::on_stored(Channel& channel, std::size_t bytes) {
  channel.assembly.count_stored(bytes);
  if (channel.assembly.complete()) assembled(channel);
}

/// Called when the last part of a message has arrived.
void EagerProtocol::assembled(Channel& channel) {
  if (RecvRequest* receive = channel.assembly.receive) {
    channel.assembly.receive = nullptr;
    if (receive->confirm) control_.send_done(channel, receive->sender_id);
    control_.release(channel, Credit::charge_of(receive->total));
    return pulls_.complete(*receive, Status::ok);
  }
  UnexpectedMessage& message = *channel.assembly.unexpected;
  channel.assembly.unexpected = nullptr;
  matcher_.completed(message);
}

}  // namespace cluster::protocol
