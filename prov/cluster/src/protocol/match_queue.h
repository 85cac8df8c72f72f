// Matching: which receive a message belongs to. Receives are tried in the order they were posted,
// wildcards and directed ones alike; messages are found in the order they arrived. One queue for
// tagged messages and one for the others, which never mix.
//
// Most programs have few receives posted and few messages stored, or take them in the order in which they
// come: then a walk along the list is the fastest there is. Once one was longer than kWalkMax they are
// indexed (posted_index.h, stored_index.h), so that ten thousand of either cost no more than a few.
#pragma once

#include <cstdint>

#include "protocol/posted_index.h"
#include "protocol/recv_requests.h"
#include "protocol/unexpected_index.h"

namespace cluster::protocol {

class MatchQueue {
 public:
  void post(RecvRequest& receive);
  void withdraw(RecvRequest& receive);
  /// The first posted receive that takes this message, or null. It leaves the queue, unless it is a buffer
  /// for many messages.
  RecvRequest* match(const Channel* channel, std::uint64_t tag);
  /// Is there one?
  bool would_match(const Channel* channel, std::uint64_t tag) { return first_fit(channel, tag) != nullptr; }
  /// The first posted receive with this context; stays in the queue.
  RecvRequest* find_context(const void* context) const;
  /// The first posted receive that waits for this channel and no other; stays in the queue.
  RecvRequest* find_directed(const Channel* channel) const;
  template <typename Visit>
  void each_directed(Visit& visit) const {
    for (RecvRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive)) {
      if (receive->from != nullptr) visit(*receive->from);
    }
  }

  void store(UnexpectedMessage& message);
  void drop(UnexpectedMessage& message);
  /// The first stored message, unclaimed and not yet taken, that fits; stays in the queue.
  UnexpectedMessage* find(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
    return stored_.empty() ? nullptr : search(from, tag, ignore);
  }
  UnexpectedMessage* find_claimed(const void* context) const;

  RecvRequest* first_posted() const { return posted_.front(); }

 private:
  RecvRequest* first_fit(const Channel* channel, std::uint64_t tag);
  void index_posted();
  UnexpectedMessage* search(const Channel* from, std::uint64_t tag, std::uint64_t ignore);

  List<RecvRequest, &RecvRequest::queue> posted_;
  List<UnexpectedMessage, &UnexpectedMessage::queue> stored_;
  PostedIndex posted_index_;
  UnexpectedIndex unexpected_index_;
};

}  // namespace cluster::protocol
