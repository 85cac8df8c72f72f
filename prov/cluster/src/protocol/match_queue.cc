#include "protocol/match_queue.h"

#include "base/end_of_memory.h"

namespace cluster::protocol {
namespace {

/// Returns the first element of a list for which fits(element) is true, or null.
template <typename List, typename Fits>
auto* first_of(const List& list, Fits&& fits) {
  auto* element = list.front();
  while (element != nullptr && !fits(*element)) element = list.after(*element);
  return element;
}

/// A walk of this many steps costs about as much as a lookup in an index.
constexpr std::size_t kWalkMax = 32;
constexpr std::size_t kFew = 16;  ///< the largest number of receives that match_among_few() checks

}  // namespace

void MatchQueue::post(RecvRequest& receive) {
  posted_.push_back(receive);
  if (posted_index_.in_use()) posted_index_.add(receive);
}

RecvRequest* MatchQueue::first_fit(const Channel* channel, std::uint64_t tag) {
  if (posted_index_.in_use()) return posted_index_.find(channel, tag);
  std::size_t steps = 0;
  RecvRequest* receive = posted_.front();
  while (receive != nullptr && !fits(receive->from, receive->tag, receive->ignore, channel, tag)) {
    receive = posted_.after(*receive);
    ++steps;
  }
  if (steps > kWalkMax) [[unlikely]]
    index_posted();
  return receive;
}

void MatchQueue::index_posted() {
  for (RecvRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive))
    posted_index_.add(*receive);
}

RecvRequest* MatchQueue::match(const Channel* channel, std::uint64_t tag) {
  RecvRequest* const receive = first_fit(channel, tag);
  if (receive != nullptr && receive->kind != IncomingRequest::Kind::multi_recv_buffer) withdraw(*receive);
  return receive;
}

MatchQueue::Look MatchQueue::match_among_few(const Channel* channel, std::uint64_t tag) const {
  if (indexed()) return {nullptr, false, true};
  bool awaits_sender = false;
  RecvRequest* receive = posted_.front();
  for (std::size_t steps = 0; receive != nullptr && steps < kFew;
       ++steps, receive = posted_.after(*receive)) {
    if (fits(receive->from, receive->tag, receive->ignore, channel, tag)) return {receive, true, true};
    awaits_sender |= receive->from == nullptr || receive->from == channel;
  }
  return {nullptr, receive == nullptr, awaits_sender};
}

RecvRequest* MatchQueue::find_context(const void* context) const {
  return first_of(posted_, [&](const RecvRequest& receive) { return receive.context == context; });
}

RecvRequest* MatchQueue::find_directed(const Channel* channel) const {
  return first_of(posted_, [&](const RecvRequest& receive) { return receive.from == channel; });
}

void MatchQueue::store(UnexpectedMessage& message) {
  unexpected_index_.add(message);
  stored_.push_back(message);
}

void MatchQueue::drop(UnexpectedMessage& message) {
  stored_.remove(message);
  unexpected_index_.remove(message);
}

UnexpectedMessage* MatchQueue::search(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
  if (const UnexpectedIndex::Result result = unexpected_index_.find(from, tag, ignore); result.known) {
    return result.message;
  }
  std::size_t steps = 0;
  UnexpectedMessage* message = stored_.front();
  for (; message != nullptr; message = stored_.after(*message), ++steps) {
    if (message->available() && fits(from, tag, ignore, message->channel, message->tag)) break;
  }
  if (steps > kWalkMax) index_unexpected(from != nullptr, ignore);
  return message;
}

/// If there is no memory for an index, later lookups walk the list again.
void MatchQueue::index_unexpected(bool directed, std::uint64_t ignore) {
  enough_memory_for([&] { unexpected_index_.walked(directed, ignore, stored_.front()); });
}

UnexpectedMessage* MatchQueue::find_claimed(const void* context) const {
  return first_of(stored_, [&](const UnexpectedMessage& message) {
    return message.claimed && message.claimed_by == context;
  });
}

}  // namespace cluster::protocol
