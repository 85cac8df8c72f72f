// Receives are posted, and first look into the store: messages that came early are taken in the
// order they arrived. Peek, claim and discard are receives that only look.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {

Status Messenger::receive(Channel* from, const RecvOp& order) {
  if (order.peek != Peek::none) {
    peek(from, order);
    return Status::ok;
  }
  if (order.min_multi_recv != 0) return post_buffer(from, order);
  MatchQueue& messages = queue(order.tagged);
  const bool claimed = order.recv_claimed || order.discard_claimed;
  UnexpectedMessage* message =
      claimed ? messages.find_claimed(order.context) : messages.find(from, order.tag, order.ignore);
  if (claimed && message == nullptr) return Status::no_message;
  RecvRequest* receive = receives_.acquire();
  if (receive == nullptr) return Status::again;
  fill(*receive, order, from);
  if (message == nullptr) {
    messages.post(*receive);
  } else if (order.discard_claimed) {
    receive->channel = message->channel;
    receive->tag = message->tag;
    receive->capacity = receive->total = 0;
    discard(*message);
    complete(*receive, Status::ok);
  } else {
    take(*receive, *message);
  }
  return Status::ok;
}

/// The posted receive that a message of `total` bytes goes to, or null.
RecvRequest* Messenger::match(Channel& channel, bool tagged, std::uint64_t tag, std::size_t total) {
  RecvRequest* const receive = queue(tagged).match(&channel, tag);
  return receive != nullptr && receive->min_multi_recv != 0 ? cut(*receive, total) : receive;
}

void Messenger::fill(RecvRequest& receive, const RecvOp& order, Channel* from) {
  receive.context = order.context;
  for (const Bytes& slice : order.slices) {
    receive.slices.add(slice);
    receive.capacity += slice.size();
  }
  receive.from = from;
  receive.tag = order.tag;
  receive.ignore = order.ignore;
  receive.tagged = order.tagged;
  receive.report = order.report;
  receive.min_multi_recv = order.min_multi_recv;
}

/// Gives a stored message to a receive; what has not arrived yet follows.
void Messenger::take(RecvRequest& receive, UnexpectedMessage& message) {
  receive.channel = message.channel;
  receive.tag = message.tag;
  receive.data = message.data;
  receive.has_data = message.has_data;
  receive.sender_id = message.sender_id;
  receive.source = message.source;
  receive.total = message.total;
  if (message.announced) {
    drop(message);
    start_pulling(receive);
  } else if (message.arrived == message.total) {
    hand_over(receive, message);
  } else {
    message.taker = &receive;
    message.claimed = false;
  }
}

void Messenger::hand_over(RecvRequest& receive, UnexpectedMessage& message) {
  Channel& channel = *message.channel;
  const std::size_t length = std::min(message.total, receive.capacity);
  if (length > 0) scatter(receive.buffers(), 0, {message.bytes.get(), length});
  const std::uint64_t charge = message.charge;
  drop(message);
  if (charge > 0) release(channel, charge);
  complete(receive, Status::ok);
}

/// Throws a message away; its sender is told that it has been dealt with.
void Messenger::discard(UnexpectedMessage& message) {
  Channel& channel = *message.channel;
  if (message.announced) {
    confirm(channel, message.sender_id);
    return drop(message);
  }
  message.claimed = false;
  message.discarded = true;
  if (message.arrived < message.total) return;  // assembled() comes back here
  const std::uint64_t charge = message.charge;
  drop(message);
  if (charge > 0) release(channel, charge);
}

void Messenger::peek(Channel* from, const RecvOp& order) {
  UnexpectedMessage* message = queue(order.tagged).find(from, order.tag, order.ignore);
  Completion completion;
  completion.context = order.context;
  completion.kind = Completion::Kind::receive;
  completion.tagged = order.tagged;
  completion.tag = order.tag;
  if (message == nullptr) {
    completion.status = Status::no_message;
  } else {
    completion.has_data = message->has_data;
    completion.tag = message->tag;
    completion.data = message->data;
    completion.length = message->total;
    if (bindings_.want_source) completion.source = directory_.handle_of(*message->channel);
    if (order.peek == Peek::claim) {
      message->claimed = true;
      message->claimed_by = order.context;
    } else if (order.peek == Peek::discard) {
      discard(*message);
    }
  }
  if (bindings_.receives != nullptr && (order.report || message == nullptr))
    bindings_.receives->push(completion);
}

bool Messenger::cancel(const void* context) {
  for (MatchQueue* queue : {&tagged_, &untagged_}) {
    RecvRequest* receive = queue->find_context(context);
    if (receive == nullptr) continue;
    queue->withdraw(*receive);
    complete(*receive, Status::canceled);
    return true;
  }
  return false;
}

}  // namespace cluster::protocol
