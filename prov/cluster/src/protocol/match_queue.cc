#include "protocol/match_queue.h"

namespace cluster::protocol {
namespace {

bool fits(const Channel* wanted, std::uint64_t wanted_tag, std::uint64_t ignore, const Channel* channel,
          std::uint64_t tag) {
  return ((wanted_tag ^ tag) & ~ignore) == 0 && (wanted == nullptr || wanted == channel);
}

}  // namespace

ReceiveRequest* MatchQueue::match(const Channel* channel, std::uint64_t tag) {
  for (ReceiveRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive)) {
    if (!fits(receive->from, receive->tag, receive->ignore, channel, tag)) continue;
    posted_.remove(*receive);
    return receive;
  }
  return nullptr;
}

ReceiveRequest* MatchQueue::find_context(const void* context) const {
  ReceiveRequest* receive = posted_.front();
  while (receive != nullptr && receive->context != context) receive = posted_.after(*receive);
  return receive;
}

ReceiveRequest* MatchQueue::find_directed(const Channel* channel) const {
  ReceiveRequest* receive = posted_.front();
  while (receive != nullptr && receive->from != channel) receive = posted_.after(*receive);
  return receive;
}

Unexpected* MatchQueue::find(const Channel* from, std::uint64_t tag, std::uint64_t ignore) const {
  for (Unexpected* message = stored_.front(); message != nullptr; message = stored_.after(*message)) {
    if (message->available() && fits(from, tag, ignore, message->channel, message->tag)) return message;
  }
  return nullptr;
}

Unexpected* MatchQueue::find_claimed(const void* context) const {
  Unexpected* message = stored_.front();
  while (message != nullptr && !(message->claimed && message->claimed_by == context)) {
    message = stored_.after(*message);
  }
  return message;
}

}  // namespace cluster::protocol
