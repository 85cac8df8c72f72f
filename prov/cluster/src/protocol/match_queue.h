// The queue of posted receives and the queue of unexpected messages: one pair for tagged and one for untagged
// messages. Receives match in the order of posting, wildcard and directed ones alike. Messages are found in
// the order of arrival.
//
// Most programs have few receives and few stored messages, or match them in order: then walking the list is
// fastest. After a walk longer than kWalkMax, the queue indexes them (match_index.h), so ten thousand cost no
// more than a few.
#pragma once

#include <array>
#include <cstdint>

#include "protocol/match_index.h"

namespace cluster::protocol {

class MatchQueue {
 public:
  void post(RecvRequest& receive);
  /// True if the receives are indexed, because there are many.
  bool indexed() const { return posted_index_.in_use(); }
  /// Like post(), for a queue that is not indexed().
  void post_unindexed(RecvRequest& receive) { posted_.push_back(receive); }
  void withdraw(RecvRequest& receive);
  /// Takes the first posted receive that matches this message, or returns null. A MultiRecvBuffer stays in
  /// the queue.
  RecvRequest* match(const Channel* channel, std::uint64_t tag);
  /// Returns the receive posted first if it matches this message and few are posted; otherwise null. It
  /// stays.
  RecvRequest* match_oldest(const Channel* channel, std::uint64_t tag) const {
    RecvRequest* const oldest = posted_.front();
    const bool found =
        oldest != nullptr && !indexed() && fits(oldest->from, oldest->tag, oldest->ignore, channel, tag);
    return found ? oldest : nullptr;
  }
  /// Removes the receive that match_oldest() has found.
  void withdraw_oldest() { posted_.pop_front(); }
  /// The result of a look at the first few receives.
  struct Look {
    RecvRequest* receive;  ///< the first that matches; it stays in the queue
    bool whole;            ///< the look was complete: it saw all receives, or found a match
    bool awaits_sender;    ///< a receive would take another message of the same sender
  };
  Look match_among_few(const Channel* channel, std::uint64_t tag) const;
  /// True if a receive matches.
  bool would_match(const Channel* channel, std::uint64_t tag) { return first_fit(channel, tag) != nullptr; }
  /// Returns the first posted receive with this context, which stays in the queue.
  RecvRequest* find_context(const void* context) const;
  /// Returns the first posted receive that matches only this channel, and stays in the queue.
  RecvRequest* find_directed(const Channel* channel) const;
  /// Returns the first posted receive that matches any sender, and stays in the queue.
  RecvRequest* find_wildcard() const { return find_directed(nullptr); }
  /// Receives without a message, in the order of posting.
  const List<RecvRequest, &RecvRequest::queue>& posted() const { return posted_; }
  /// Messages without a receive, in the order of arrival.
  const List<UnexpectedMessage, &UnexpectedMessage::queue>& stored() const { return stored_; }
  template <typename Visit>
  void each_directed(Visit& visit) const {
    for (RecvRequest* receive = posted_.front(); receive != nullptr; receive = posted_.after(*receive)) {
      if (receive->from != nullptr) visit(*receive->from);
    }
  }

  void store(UnexpectedMessage& message);
  void drop(UnexpectedMessage& message);
  /// Returns the first available message that matches, and stays in the queue.
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

/// The queues of an endpoint: untagged messages, tagged messages, and messages of collective operations,
/// which no receive of the application ever matches.
class MatchQueues {
 public:
  /// The queue of the application's messages.
  MatchQueue& application(bool tagged) { return tagged ? queues_[kTagged] : queues_[kUntagged]; }
  const MatchQueue& application(bool tagged) const { return tagged ? queues_[kTagged] : queues_[kUntagged]; }
  MatchQueue& collective() { return queues_[kCollective]; }
  /// Returns the queue to which a message, or a receive for it, belongs.
  template <typename Message>
  MatchQueue& of(const Message& message) {
    return message.collective ? collective() : application(message.tagged);
  }
  MatchQueue& of(const wire::Segment& first) {
    return first.collective() ? collective() : application(first.tagged());
  }

  /// Calls visit(channel) for the peer of each receive that waits for one peer alone.
  template <typename Visit>
  void each_directed(Visit&& visit) const {
    for (const MatchQueue& queue : queues_) queue.each_directed(visit);
  }
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }
  auto begin() const { return queues_.begin(); }
  auto end() const { return queues_.end(); }

 private:
  enum Index : std::size_t { kUntagged, kTagged, kCollective, kCount };

  std::array<MatchQueue, kCount> queues_;
};

}  // namespace cluster::protocol
