#include "protocol/matcher.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cluster::protocol {
namespace {

/// One peer may have at most `unexpected_max` divided by this number of messages in the store. The credit and
/// the announcements of a correct sender need far less.
constexpr std::size_t kPartOfOne = 8;
/// While the store is filled to 1 / kPartOfUnknown or more, messages from peers outside the address vector
/// stay outside. The rest of the store remains for known peers. (matcher.h names the exceptions.)
constexpr std::size_t kPartOfUnknown = 2;

void fill(RecvRequest& receive, const RecvOp& op, Channel* from) {
  receive.context = op.context;
  for (const Bytes& slice : op.slices) {
    receive.slices.add(slice);
    receive.capacity += slice.size();
  }
  receive.from = from;
  receive.tag = op.tag;
  receive.ignore = op.ignore;
  receive.tagged = op.tagged;
  receive.internal = op.internal;
  receive.deferred = op.deferred;
  receive.report = op.report;
  receive.plain = receive.kind == IncomingRequest::Kind::receive && op.report && !op.internal &&
                  !op.deferred && op.slices.size() == 1;
}

}  // namespace

Matcher::Matcher(const Context& context, ControlSender& control, CompletionReporter& reporter,
                 PullReceiver& pulls)
    : context_(context),
      control_(control),
      reporter_(reporter),
      pulls_(pulls),
      messages_(context.settings.unexpected_hard_max) {}

Status Matcher::receive(Channel* from, const RecvOp& op) {
  if (op.peek != Peek::none) {
    peek(from, op);
    return Status::ok;
  }
  if (op.min_multi_recv != 0) return post_buffer(from, op);
  MatchQueue& messages = queues_.of(op);
  const bool claimed = op.recv_claimed || op.discard_claimed;
  UnexpectedMessage* message =
      claimed ? messages.find_claimed(op.context) : messages.find(from, op.tag, op.ignore);
  if (claimed && message == nullptr) return Status::no_message;
  RecvRequest* receive = pulls_.pool().acquire<RecvRequest>();
  if (receive == nullptr) return Status::again;
  fill(*receive, op, from);
  if (message == nullptr) {
    messages.post(*receive);
  } else if (op.discard_claimed) {
    receive->channel = message->channel;
    receive->tag = message->tag;
    receive->capacity = receive->total = 0;
    discard(*message);
    pulls_.complete(*receive, Status::ok);
  } else {
    take(*receive, *message);
  }
  return Status::ok;
}

void Matcher::fill_shared(RecvRequest& receive, const SharedReceives::Receive& shared) const {
  RecvOp op = shared.op();
  op.report |= !context_.bindings.selects_receives;
  fill(receive, op, nullptr);
}

/// Returns true if messages of this peer may take shared receives.
bool Matcher::shares(const Channel& channel) const {
  const EndpointBindings& bindings = context_.bindings;
  return bindings.shared_receives != nullptr &&
         (bindings.shares_with == kAddrUnspec || context_.handles.handle_of(channel) == bindings.shares_with);
}

/// Takes a shared receive for a message that matches none of this endpoint's own receives. Returns null if no
/// shared receive matches.
RecvRequest* Matcher::adopt(const Channel& channel, bool tagged, std::uint64_t tag) {
  SharedReceives& shared = *context_.bindings.shared_receives;
  if (shared.empty() || !shares(channel)) return nullptr;
  RecvRequest* const receive = pulls_.pool().acquire<RecvRequest>();  // may throw, so it comes before take()
  if (receive == nullptr) return nullptr;
  const auto sender = [&] { return context_.handles.handle_of(channel); };
  const std::optional<SharedReceives::Receive> taken = shared.take(tagged, tag, sender);
  if (!taken) {
    pulls_.pool().release(*receive);
    return nullptr;
  }
  fill_shared(*receive, *taken);
  return receive;
}

bool Matcher::take_shared(Channel* from, const SharedReceives::Receive& wanted) {
  UnexpectedMessage* const message = queues_.application(wanted.tagged).find(from, wanted.tag, wanted.ignore);
  if (message == nullptr) return false;
  RecvRequest* const receive = pulls_.pool().acquire<RecvRequest>();
  if (receive == nullptr) return false;
  if (!context_.bindings.shared_receives->claim(wanted)) {
    pulls_.pool().release(*receive);
    return true;
  }
  fill_shared(*receive, wanted);
  take(*receive, *message);
  return true;
}

void Matcher::offer_stored(const Channel& from) {
  if (!shares(from)) return;
  for (const bool tagged : {false, true}) {
    const auto& stored = queues_.application(tagged).stored();
    for (UnexpectedMessage *message = stored.front(), *next; message != nullptr; message = next) {
      next = stored.after(*message);
      if (message->channel != &from || !message->available()) continue;
      if (RecvRequest* const receive = adopt(from, tagged, message->tag)) take(*receive, *message);
    }
  }
}

Status Matcher::post_buffer(Channel* from, const RecvOp& op) {
  MultiRecvBuffer* const buffer = pulls_.pool().acquire<MultiRecvBuffer>();
  if (buffer == nullptr) return Status::again;
  fill(*buffer, op, from);
  buffer->min_free = op.min_multi_recv;
  fill_buffer(*buffer);
  return Status::ok;
}

/// Posts the buffer, and gives the stored messages that match to the buffer.
void Matcher::fill_buffer(MultiRecvBuffer& buffer) {
  queues_.of(buffer).post(buffer);
  pulls_.multi_receive().hold(buffer);
  while (!buffer.closed) {
    UnexpectedMessage* const message = queues_.of(buffer).find(buffer.from, buffer.tag, buffer.ignore);
    if (message == nullptr) break;
    RecvRequest* const piece = cut(buffer, message->total);
    if (piece == nullptr) break;
    take(*piece, *message);
  }
  pulls_.multi_receive().unhold(buffer);
}

RecvRequest* Matcher::cut(MultiRecvBuffer& buffer, std::size_t total) {
  RecvRequest* const piece = pulls_.multi_receive().cut(buffer, total);
  if (buffer.closed) queues_.of(buffer).withdraw(buffer);
  return piece;
}

/// Gives a stored message to a receive. If parts of the message are missing, the receive waits until they
/// have arrived.
void Matcher::take(RecvRequest& receive, UnexpectedMessage& message) {
  receive.matched(*message.channel, message);
  if (const Status lost = message.lost; lost != Status::ok) {
    drop(message);
    pulls_.complete(receive, lost);
  } else if (message.announced) {
    drop(message);
    pulls_.start(receive);
  } else if (message.arrived == message.total) {
    hand_over(receive, message);
  } else {
    message.receive = &receive;
    message.claimed = false;
  }
}

void Matcher::hand_over(RecvRequest& receive, UnexpectedMessage& message) {
  const std::size_t length = std::min(message.total, receive.capacity);
  if (length > 0) scatter(receive.buffers(), 0, {message.bytes.get(), length});
  drop_and_release(message);
  pulls_.complete(receive, Status::ok);
}

void Matcher::discard(UnexpectedMessage& message) {
  if (message.announced) {
    control_.send_done(*message.channel, message.sender_id);
    return drop(message);
  }
  message.claimed = false;
  message.discarded = true;
  if (message.arrived < message.total) return;  // completed() calls this function again
  drop_and_release(message);
}

void Matcher::peek(Channel* from, const RecvOp& op) {
  UnexpectedMessage* const message = queues_.of(op).find(from, op.tag, op.ignore);
  reporter_.peeked(op, message);
  if (message == nullptr) return;
  if (op.peek == Peek::claim) {
    message->claimed = true;
    message->claimed_by = op.context;
  } else if (op.peek == Peek::discard) {
    discard(*message);
  }
}

bool Matcher::cancel(const void* context) {
  for (MatchQueue& queue : queues_) {
    RecvRequest* receive = queue.find_context(context);
    if (receive == nullptr) continue;
    queue.withdraw(*receive);
    pulls_.complete(*receive, Status::canceled);
    return true;
  }
  return false;
}

void Matcher::redirect(const Channel& from, Channel& to) {
  for (const bool tagged : {false, true}) {
    MatchQueue& queue = queues_.application(tagged);
    while (RecvRequest* const receive = queue.find_directed(&from)) {
      queue.withdraw(*receive);
      receive->from = &to;
      if (receive->kind != IncomingRequest::Kind::receive) {
        fill_buffer(static_cast<MultiRecvBuffer&>(*receive));
      } else if (UnexpectedMessage* const message = queue.find(&to, receive->tag, receive->ignore)) {
        take(*receive, *message);
      } else {
        queue.post(*receive);
      }
    }
  }
}

Assembly Matcher::begin(Channel& channel, const wire::Segment& first, std::size_t total,
                        std::uint64_t charge) {
  if (RecvRequest* const receive = match(channel, first, total)) {
    receive->matched(channel, header_of(first, total));
    return {receive, nullptr};
  }
  UnexpectedMessage* const message = store(channel, header_of(first, total), total, {});
  if (message != nullptr) {
    message->charge = charge;
    message->discarded = unwanted(channel, first);
  }
  return {nullptr, message};
}

UnexpectedMessage* Matcher::store(Channel& channel, const MessageHeader& header, std::size_t bytes,
                                  ConstBytes payload) {
  std::unique_ptr<std::byte[]> memory;
  if (bytes != 0) memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  UnexpectedMessage* const message = messages_.acquire();
  if (message == nullptr) return nullptr;
  static_cast<MessageHeader&>(*message) = header;
  message->channel = &channel;
  message->bytes = std::move(memory);
  bytes_ += bytes;
  if (!payload.empty()) std::memcpy(message->bytes.get(), payload.data(), payload.size());
  message->arrived = payload.size();
  queues_.of(*message).store(*message);
  channel.unexpected.messages.push_back(*message);
  ++channel.unexpected.count;
  ++context_.counters.unexpected;
  update_scarce();
  return message;
}

void Matcher::completed(UnexpectedMessage& message) {
  if (message.confirm && message.internal && message.discarded) {
    control_.send_failed(*message.channel, message.sender_id);
  } else if (message.confirm) {
    control_.send_done(*message.channel, message.sender_id);
  }
  message.confirm = false;
  if (message.receive != nullptr) return hand_over(*message.receive, message);
  if (message.discarded) discard(message);
}

void Matcher::free_bytes(UnexpectedMessage& message) {
  if (message.bytes != nullptr) bytes_ -= message.total;
  message.bytes.reset();
}

void Matcher::drop(UnexpectedMessage& message) {
  queues_.of(message).drop(message);
  message.channel->unexpected.messages.remove(message);
  --message.channel->unexpected.count;
  free_bytes(message);
  messages_.release(message);
  update_scarce();
}

/// Drops a complete message, and lets its sender use the credit again.
void Matcher::drop_and_release(UnexpectedMessage& message) {
  Channel& channel = *message.channel;
  const std::uint64_t charge = message.charge;
  drop(message);
  if (charge > 0) control_.release(channel, charge);
}

/// Must be called whenever the store has changed. While all messages together stay below every limit of the
/// store, `scarce_` is false, because no peer can have reached a limit.
void Matcher::update_scarce() {
  scarce_ = messages_.alive() >= context_.settings.unexpected_max / kPartOfOne ||
            bytes_ >= context_.settings.unexpected_bytes_max / kPartOfUnknown;
}

bool Matcher::ready_when_scarce(const Channel& channel, const wire::Segment& segment) {
  using wire::SegmentKind;
  const bool begins = segment.kind == SegmentKind::eager || segment.kind == SegmentKind::eager_first ||
                      segment.kind == SegmentKind::announce;
  if (!begins) return true;
  const MessengerSettings& settings = context_.settings;
  const std::size_t part = context_.handles.handle_of(channel) == kAddrNotAvail ? kPartOfUnknown : 1;
  const bool capacity = messages_.alive() < settings.unexpected_max / part &&
                        bytes_ < settings.unexpected_bytes_max / part &&
                        channel.unexpected.count < settings.unexpected_max / kPartOfOne;
  // The segment for which this side waits may lie behind this message. If the message had to wait, that
  // segment would never arrive.
  const bool waited_for = channel.waits_for_peer() && messages_.alive() < settings.unexpected_hard_max / part;
  return capacity || waited_for || queues_.of(segment).would_match(&channel, segment.tag) ||
         shares_receive_for(channel, segment);
}

bool Matcher::shares_receive_for(const Channel& channel, const wire::Segment& first) const {
  if (first.internal() || !shares(channel)) return false;
  const auto sender = [&] { return context_.handles.handle_of(channel); };
  return context_.bindings.shared_receives->would_match(first.tagged(), first.tag, sender);
}

void Matcher::fail_messages(Channel& channel, Status status) {
  auto& messages = channel.unexpected.messages;
  for (UnexpectedMessage* message = messages.front(); message != nullptr;) {
    UnexpectedMessage* const next = messages.after(*message);
    message->charge = 0;
    message->confirm = false;
    if (message->receive != nullptr) pulls_.complete(*message->receive, status);
    if (message->incomplete()) lose(*message, status);
    message = next;
  }
}

/// Called when the rest of a message will not arrive. If a receive has taken the message, that receive has
/// already ended. Otherwise a later receive ends with `status`. Internal messages are dropped, because the
/// loss of the peer ends the collective operation or the connection.
void Matcher::lose(UnexpectedMessage& message, Status status) {
  if (message.receive != nullptr || message.discarded || message.internal) return drop(message);
  free_bytes(message);
  message.announced = false;
  message.arrived = message.total;
  message.lost = status;
  update_scarce();
}

std::size_t Matcher::incomplete(const Channel& channel) {
  std::size_t count = 0;
  const auto& messages = channel.unexpected.messages;
  for (const UnexpectedMessage* each = messages.front(); each != nullptr; each = messages.after(*each)) {
    count += each->incomplete() && each->available() ? 1 : 0;
  }
  return count;
}

void Matcher::fail_wildcards(Status status) {
  for (MatchQueue& queue : queues_) {
    while (RecvRequest* receive = queue.find_wildcard()) {
      queue.withdraw(*receive);
      pulls_.complete(*receive, status);
    }
  }
}

void Matcher::fail_directed(const Channel& channel, Status status, bool directed) {
  for (MatchQueue& queue : queues_) {
    if (!directed && &queue != &queues_.internal()) continue;
    while (RecvRequest* receive = queue.find_directed(&channel)) {
      queue.withdraw(*receive);
      pulls_.complete(*receive, status);
    }
  }
}

}  // namespace cluster::protocol
