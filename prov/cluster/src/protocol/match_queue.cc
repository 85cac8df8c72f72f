#include "protocol/match_queue.h"

#include "protocol/match_key.h"

namespace cluster::protocol {
namespace {

/// So many steps along a list cost about as much as the indices do.
constexpr std::size_t kWalkMax = 32;

}  // namespace

void MatchQueue::post(ReceiveRequest& receive) {
  posted_.push_back(receive);
  if (posted_index_.in_use()) posted_index_.add(receive);
}

void MatchQueue::withdraw(ReceiveRequest& receive) {
  posted_.remove(receive);
  if (posted_index_.in_use()) posted_index_.remove(receive);
}

ReceiveRequest* MatchQueue::first_fit(const Channel* channel, std::uint64_t tag) {
  if (posted_index_.in_use()) return posted_index_.find(channel, tag);
  std::size_t steps = 0;
  ReceiveRequest* receive = posted_.front();
  while (receive != nullptr && !fits(receive->from, receive->tag, receive->ignore, channel, tag)) {
    receive = posted_.after(*receive);
    ++steps;
  }
  if (steps > kWalkMax) [[unlikely]]
    index_posted();
  return receive;
}

void MatchQueue::index_posted() {
  for (ReceiveRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive))
    posted_index_.add(*receive);
}

ReceiveRequest* MatchQueue::match(const Channel* channel, std::uint64_t tag) {
  ReceiveRequest* const receive = first_fit(channel, tag);
  if (receive != nullptr && receive->least_room == 0) withdraw(*receive);
  return receive;
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

void MatchQueue::store(Unexpected& message) {
  stored_.push_back(message);
  stored_index_.add(message);
}

void MatchQueue::drop(Unexpected& message) {
  stored_.remove(message);
  stored_index_.remove(message);
}

Unexpected* MatchQueue::search(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
  if (const StoredIndex::Answer answer = stored_index_.find(from, tag, ignore); answer.known) {
    return answer.message;
  }
  std::size_t steps = 0;
  Unexpected* message = stored_.front();
  for (; message != nullptr; message = stored_.after(*message), ++steps) {
    if (message->available() && fits(from, tag, ignore, message->channel, message->tag)) break;
  }
  if (steps > kWalkMax) stored_index_.walked(from != nullptr, ignore, stored_.front());
  return message;
}

Unexpected* MatchQueue::find_claimed(const void* context) const {
  Unexpected* message = stored_.front();
  while (message != nullptr && !(message->claimed && message->claimed_by == context)) {
    message = stored_.after(*message);
  }
  return message;
}

}  // namespace cluster::protocol
