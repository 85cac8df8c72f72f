// Receives are posted, and first look into the store: messages that came early are taken in the
// order they arrived. Peek, claim and discard are receives that only look.
#include <algorithm>

#include "protocol/messenger.h"

namespace cluster::protocol {

Fault Messenger::receive(Channel* from, const ReceiveOrder& order) {
  if (order.peek != Peek::none) {
    peek(from, order);
    return Fault::none;
  }
  if (order.least_room != 0) return post_buffer(from, order);
  MatchQueue& messages = queue(order.tagged);
  const bool claimed = order.take_claimed || order.drop_claimed;
  Unexpected* message =
      claimed ? messages.find_claimed(order.context) : messages.find(from, order.tag, order.ignore);
  if (claimed && message == nullptr) return Fault::no_message;
  ReceiveRequest* receive = receives_.take();
  if (receive == nullptr) return Fault::again;
  fill(*receive, order, from);
  if (message == nullptr) {
    messages.post(*receive);
  } else if (order.drop_claimed) {
    receive->channel = message->channel;
    receive->tag = message->tag;
    receive->capacity = receive->total = 0;
    discard(*message);
    complete(*receive, Fault::none);
  } else {
    take(*receive, *message);
  }
  return Fault::none;
}

/// The posted receive that a message of `total` bytes goes to, or null.
ReceiveRequest* Messenger::match(Channel& channel, bool tagged, std::uint64_t tag, std::size_t total) {
  ReceiveRequest* const receive = queue(tagged).match(&channel, tag);
  return receive != nullptr && receive->least_room != 0 ? cut(*receive, total) : receive;
}

void Messenger::fill(ReceiveRequest& receive, const ReceiveOrder& order, Channel* from) {
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
  receive.least_room = order.least_room;
}

/// Gives a stored message to a receive; what has not arrived yet follows.
void Messenger::take(ReceiveRequest& receive, Unexpected& message) {
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

void Messenger::hand_over(ReceiveRequest& receive, Unexpected& message) {
  Channel& channel = *message.channel;
  const std::size_t length = std::min(message.total, receive.capacity);
  if (length > 0) scatter(receive.buffers(), 0, {message.bytes.get(), length});
  const std::uint64_t charge = message.charge;
  drop(message);
  if (charge > 0) release(channel, charge);
  complete(receive, Fault::none);
}

/// Throws a message away; its sender is told that it has been dealt with.
void Messenger::discard(Unexpected& message) {
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

void Messenger::peek(Channel* from, const ReceiveOrder& order) {
  Unexpected* message = queue(order.tagged).find(from, order.tag, order.ignore);
  Completion completion;
  completion.context = order.context;
  completion.kind = Completion::Kind::receive;
  completion.tagged = order.tagged;
  completion.tag = order.tag;
  if (message == nullptr) {
    completion.fault = Fault::no_message;
  } else {
    completion.has_data = message->has_data;
    completion.tag = message->tag;
    completion.data = message->data;
    completion.length = message->total;
    if (sinks_.want_source) completion.source = directory_.handle_of(*message->channel);
    if (order.peek == Peek::claim) {
      message->claimed = true;
      message->claimed_by = order.context;
    } else if (order.peek == Peek::discard) {
      discard(*message);
    }
  }
  if (sinks_.receives != nullptr && (order.report || message == nullptr)) sinks_.receives->push(completion);
}

bool Messenger::cancel(const void* context) {
  for (MatchQueue* queue : {&tagged_, &untagged_}) {
    ReceiveRequest* receive = queue->find_context(context);
    if (receive == nullptr) continue;
    queue->withdraw(*receive);
    complete(*receive, Fault::canceled);
    return true;
  }
  return false;
}

}  // namespace cluster::protocol
