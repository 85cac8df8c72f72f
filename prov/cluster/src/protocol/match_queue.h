// A match queue contains posted receives and unexpected messages. A message takes the oldest receive that
// matches, whether this receive names its sender (directed) or accepts any sender (wildcard). A receive takes
// the oldest message that matches.
//
// Most programs have few receives and few stored messages, or match them in order. In both cases, a walk
// along the list is fastest. After one walk of more than kWalkMax steps along the receives, the queue indexes
// the receives. After two such walks of the same kind along the messages, it indexes the messages
// (match_index.h). With an index, a lookup among ten thousand entries costs no more than a lookup among a
// few.
#pragma once

#include <array>
#include <cstdint>

#include "protocol/match_index.h"

namespace cluster::protocol {

class MatchQueue {
 public:
  void post(RecvRequest& receive);
  /// Returns true if the posted receives are indexed.
  bool indexed() const { return posted_index_.in_use(); }
  /// Like post(), for a queue that is not indexed().
  void post_unindexed(RecvRequest& receive) { posted_.push_back(receive); }
  void withdraw(RecvRequest& receive) {
    posted_.remove(receive);
    if (posted_index_.in_use()) posted_index_.remove(receive);
  }
  /// Removes and returns the first posted receive that matches this message. Returns null if there is none. A
  /// MultiRecvBuffer stays in the queue.
  RecvRequest* match(const Channel* channel, std::uint64_t tag);
  /// Returns the oldest receive if it matches this message and the receives are not indexed, otherwise null.
  /// The receive stays in the queue.
  RecvRequest* match_oldest(const Channel* channel, std::uint64_t tag) const {
    RecvRequest* const oldest = posted_.front();
    const bool found =
        oldest != nullptr && !indexed() && fits(oldest->from, oldest->tag, oldest->ignore, channel, tag);
    return found ? oldest : nullptr;
  }
  /// Removes the receive that match_oldest() has found.
  void withdraw_oldest() { posted_.pop_front(); }
  /// What match_among_few() has found among the first few receives.
  struct Look {
    RecvRequest* receive;  ///< the first receive that matches, or null; it stays in the queue
    bool whole;            ///< a match was found, or all receives were checked
    bool awaits_sender;    ///< false: no checked receive takes messages of this sender
  };
  Look match_among_few(const Channel* channel, std::uint64_t tag) const;
  /// Returns true if a posted receive matches this message.
  bool would_match(const Channel* channel, std::uint64_t tag) { return first_fit(channel, tag) != nullptr; }
  /// Returns the first posted receive with this context, or null. The receive stays in the queue.
  RecvRequest* find_context(const void* context) const;
  /// Returns the first posted receive that accepts messages of this channel alone, or null. The receive stays
  /// in the queue.
  RecvRequest* find_directed(const Channel* channel) const;
  /// Returns the first posted receive that accepts any sender, or null. The receive stays in the queue.
  RecvRequest* find_wildcard() const { return find_directed(nullptr); }
  /// Returns the receives that wait for a message, in the order of posting.
  const List<RecvRequest, &RecvRequest::queue>& posted() const { return posted_; }
  /// Returns the messages that wait for a receive, in the order of arrival.
  const List<UnexpectedMessage, &UnexpectedMessage::queue>& stored() const { return stored_; }
  template <typename Visit>
  void each_directed(Visit& visit) const {
    for (RecvRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive)) {
      if (receive->from != nullptr) visit(*receive->from);
    }
  }

  void store(UnexpectedMessage& message);
  void drop(UnexpectedMessage& message);
  /// Returns the first available message that matches, or null. The message stays in the queue.
  UnexpectedMessage* find(const Channel* from, std::uint64_t tag, std::uint64_t ignore) {
    return stored_.empty() ? nullptr : search(from, tag, ignore);
  }
  UnexpectedMessage* find_claimed(const void* context) const;

 private:
  RecvRequest* first_fit(const Channel* channel, std::uint64_t tag);
  void index_posted();
  void index_unexpected(bool directed, std::uint64_t ignore);
  UnexpectedMessage* search(const Channel* from, std::uint64_t tag, std::uint64_t ignore);

  List<RecvRequest, &RecvRequest::queue> posted_;
  List<UnexpectedMessage, &UnexpectedMessage::queue> stored_;
  PostedIndex posted_index_;
  UnexpectedIndex unexpected_index_;
};

/// The queues of an endpoint: one for untagged messages, one for tagged messages, and one for internal
/// messages, which collective operations or a connection exchange. No receive of the application ever matches
/// an internal message.
class MatchQueues {
 public:
  /// Returns the queue for the application's tagged or untagged messages.
  MatchQueue& application(bool tagged) { return tagged ? queues_[kTagged] : queues_[kUntagged]; }
  const MatchQueue& application(bool tagged) const { return tagged ? queues_[kTagged] : queues_[kUntagged]; }
  MatchQueue& internal() { return queues_[kInternal]; }
  /// Returns the queue to which this message or receive belongs.
  template <typename Message>
  MatchQueue& of(const Message& message) {
    return message.internal ? internal() : application(message.tagged);
  }
  MatchQueue& of(const wire::Segment& first) {
    return first.internal() ? internal() : application(first.tagged());
  }

  /// Calls visit(channel) for each receive that names its sender.
  template <typename Visit>
  void each_directed(Visit&& visit) const {
    for (const MatchQueue& queue : queues_) queue.each_directed(visit);
  }
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }
  auto begin() const { return queues_.begin(); }
  auto end() const { return queues_.end(); }

 private:
  enum Index : std::size_t { kUntagged, kTagged, kInternal, kCount };

  std::array<MatchQueue, kCount> queues_;
};

}  // namespace cluster::protocol
