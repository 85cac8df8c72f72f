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
#include "protocol/request.h"
#include "protocol/stored_index.h"

namespace cluster::protocol {

class MatchQueue {
 public:
  void post(ReceiveRequest& receive);
  void withdraw(ReceiveRequest& receive);
  /// The first posted receive that takes this message, or null. It leaves the queue, unless it is a buffer
  /// for many messages.
  ReceiveRequest* match(const Channel* channel, std::uint64_t tag);
  /// Is there one?
  bool would_match(const Channel* channel, std::uint64_t tag) { return first_fit(channel, tag) != nullptr; }
  /// The first posted receive with this context; stays in the queue.
  ReceiveRequest* find_context(const void* context) const;
  /// The first posted receive that waits for this channel and no other; stays in the queue.
  ReceiveRequest* find_directed(const Channel* channel) const;
  template <typename Visit>
  void each_directed(Visit& visit) const {
    for (ReceiveRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive)) {
      if (receive->from != nullptr) visit(*receive->from);
    }
  }

  void store(Unexpected& message);
  void drop(Unexpected& message);
  /// The first stored message, unclaimed and not yet taken, that fits; stays in the queue.
  Unexpected* find(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
    return stored_.empty() ? nullptr : search(from, tag, ignore);
  }
  Unexpected* find_claimed(const void* context) const;

  ReceiveRequest* first_posted() const { return posted_.front(); }

 private:
  ReceiveRequest* first_fit(const Channel* channel, std::uint64_t tag);
  void index_posted();
  Unexpected* search(const Channel* from, std::uint64_t tag, std::uint64_t ignore);

  List<ReceiveRequest, &ReceiveRequest::order> posted_;
  List<Unexpected, &Unexpected::order> stored_;
  PostedIndex posted_index_;
  StoredIndex stored_index_;
};

}  // namespace cluster::protocol
