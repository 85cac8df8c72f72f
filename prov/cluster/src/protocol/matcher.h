// Matches messages with receives. Posted receives wait here for their message, and unexpected messages wait
// for their receive. Receives match in the order of posting, and messages match in the order of arrival.
// Tagged, untagged and internal messages have separate queues. Peek, claim and discard consider only messages
// in the store.
//
// The store of unexpected messages is bounded. While it is far from full, ready() is a single test. When the
// store is fuller, each peer may have at most an eighth of `unexpected_max` messages in the store. A message
// from a peer outside the address vector is accepted only while the store is less than half full. If a
// segment would begin a message beyond these limits, the segment stays with its carrier, and so do all
// ordered segments behind it. Two kinds of messages are accepted nevertheless. A message of the first kind
// matches a posted or shared receive. A message of the second kind comes from a peer for which this side
// waits. The awaited segment may be behind the message, and would never arrive if the message had to wait.
// Messages of the second kind are accepted only up to a hard limit.
#pragma once

#include "base/pool.h"
#include "protocol/control_sender.h"
#include "protocol/match_queue.h"
#include "protocol/pull_receiver.h"
#include "protocol/shared_receives.h"

namespace cluster::protocol {

class Matcher {
 public:
  Matcher(const Context& context, ControlSender& control, CompletionReporter& reporter, PullReceiver& pulls);

  // --- from the application ---
  /// Posts a receive, or completes it with a stored message. `from`: the sender, or null for any sender.
  Status receive(Channel* from, const RecvOp& op);
  bool cancel(const void* context);
  /// Changes the application's receives that accept only `from`, so that they accept only `to`. Keeps the
  /// order among the changed receives. If a stored message from `to` matches a changed receive, the receive
  /// takes the message.
  void redirect(const Channel& from, Channel& to);
  /// If a stored message matches the shared receive `wanted`, gives the first such message to `wanted`. The
  /// caller must have added `wanted` to the shared receives. Returns true if `wanted` no longer waits.
  /// `from`: as for receive().
  bool take_shared(Channel* from, const SharedReceives::Receive& wanted);
  /// Gives the stored messages of the peer `from` to shared receives that match. Must be called when a change
  /// first allows messages of this peer to take shared receives.
  void offer_stored(const Channel& from);

  // --- arrivals ---
  /// Returns false if the segment begins a message for which no receive waits, and the store has no capacity
  /// for the message. In this case the carrier must keep the segment and all ordered segments behind it until
  /// the store has capacity.
  bool ready(const Channel& channel, const wire::Segment& segment) {
    return plentiful() || ready_when_scarce(channel, segment);
  }
  /// Returns true if the store has capacity for any message of any sender.
  bool plentiful() const { return !scarce_; }
  /// Returns the receive for a message of `total` bytes, or null. The receive is no longer in a queue.
  RecvRequest* match(Channel& channel, const wire::Segment& first, std::size_t total) {
    RecvRequest* const receive = queues_.of(first).match(&channel, first.tag);
    if (receive == nullptr) {
      const bool may_share = context_.bindings.shared_receives != nullptr && !first.internal();
      return may_share ? adopt(channel, first.tagged(), first.tag) : nullptr;
    }
    if (receive->kind == IncomingRequest::Kind::receive) [[likely]]
      return receive;
    return cut(static_cast<MultiRecvBuffer&>(*receive), total);
  }
  /// Begins a message of `total` bytes. The result names the receive that matches the message. If none
  /// matches, the result names a new entry in the store, and this entry holds `charge`. If the store is full,
  /// the result names neither.
  Assembly begin(Channel& channel, const wire::Segment& first, std::size_t total, std::uint64_t charge);
  /// Stores a message that no receive matches. Allocates `bytes` bytes for it and copies `payload` to the
  /// front of them. Returns null if the store is full.
  UnexpectedMessage* store(Channel& channel, const MessageHeader& header, std::size_t bytes,
                           ConstBytes payload);
  /// Returns true if no receive will ever be posted for this message. The only such messages are internal
  /// messages that the InternalListener does not want. For example, the collective operation of the message
  /// may have failed or be over.
  bool unwanted(const Channel& channel, const wire::Segment& first) const {
    if (!first.internal()) [[likely]]
      return false;
    InternalListener* const listener = context_.bindings.engine.internal;
    return listener == nullptr ||
           !listener->wanted(first.tag, first.data, context_.handles.is_member(channel));
  }
  /// Called when the last part of a stored message has arrived.
  void completed(UnexpectedMessage& message);
  /// Drops a stored message. The sender of the message sees a normal completion.
  void discard(UnexpectedMessage& message);

  /// Called by Messenger::fail() when the peer is lost. Complete messages stay in the store. Of an incomplete
  /// message, only the header stays. A later receive that takes this header ends with `status`, as if the
  /// receive had been posted before the loss. Internal messages that are incomplete do not stay.
  void fail_messages(Channel& channel, Status status);
  /// Returns the number of the channel's stored messages that are incomplete and available().
  static std::size_t incomplete(const Channel& channel);
  /// Ends receives that wait for this peer alone. Receives for internal messages always end, because neither
  /// a collective operation nor a connection continues with the peer's next incarnation. Receives of the
  /// application end only if `directed` is true.
  void fail_directed(const Channel& channel, Status status, bool directed);
  /// Ends the receives that accept any sender, because no peer is left that could send.
  void fail_wildcards(Status status);

  std::size_t stored() const { return messages_.alive(); }
  MatchQueues& queues() { return queues_; }
  const MatchQueues& queues() const { return queues_; }

 private:
  Status post_buffer(Channel* from, const RecvOp& op);
  void fill_buffer(MultiRecvBuffer& buffer);
  RecvRequest* cut(MultiRecvBuffer& buffer, std::size_t total);
  bool shares(const Channel& channel) const;
  RecvRequest* adopt(const Channel& channel, bool tagged, std::uint64_t tag);
  void fill_shared(RecvRequest& receive, const SharedReceives::Receive& shared) const;
  void take(RecvRequest& receive, UnexpectedMessage& message);
  void hand_over(RecvRequest& receive, UnexpectedMessage& message);
  void peek(Channel* from, const RecvOp& op);
  void lose(UnexpectedMessage& message, Status status);
  void free_bytes(UnexpectedMessage& message);
  void drop(UnexpectedMessage& message);
  void drop_and_release(UnexpectedMessage& message);
  bool shares_receive_for(const Channel& channel, const wire::Segment& first) const;
  bool ready_when_scarce(const Channel& channel, const wire::Segment& segment);
  void update_scarce();

  const Context& context_;
  ControlSender& control_;
  CompletionReporter& reporter_;
  PullReceiver& pulls_;
  MatchQueues queues_;
  Pool<UnexpectedMessage> messages_;
  std::size_t bytes_ = 0;  ///< bytes that messages_ hold
  bool scarce_ = false;    ///< a peer may have reached a limit of the store
};

}  // namespace cluster::protocol
