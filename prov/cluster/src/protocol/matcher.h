// Matching: posted receives wait here for their message, and messages for their receive. Receives are matched
// in the order of posting, messages in the order of arrival; tagged, untagged and collective ones never mix.
// Peek, claim and discard are receives that only look at what has arrived.
//
// The store of unexpected messages is bounded. While it is far from full, ready() is a single test. Beyond
// that each peer may hold an eighth of it, and all peers that are not in the address vector together half; a
// segment that begins one message more stays with its carrier, with all ordered ones behind it. Two kinds
// pass: a message that a posted receive matches, and one of a peer that this side waits for, since what it
// waits for may lie behind that message (up to a hard limit).
#pragma once

#include "base/pool.h"
#include "protocol/control_sender.h"
#include "protocol/match_queue.h"
#include "protocol/pull_receiver.h"

namespace cluster::protocol {

class Matcher {
 public:
  Matcher(const Context& context, ControlSender& control, CompletionReporter& reporter, PullReceiver& pulls);

  // --- from the application ---
  /// `from` null: from any sender.
  Status receive(Channel* from, const RecvOp& op);
  bool cancel(const void* context);

  // --- arrivals ---
  /// False if the segment begins a message that no receive waits for and that the store has no capacity for:
  /// it stays with its carrier, and all ordered segments behind it, until there is capacity.
  bool ready(const Channel& channel, const wire::Segment& segment) {
    return plentiful() || ready_when_scarce(channel, segment);
  }
  /// The store has capacity for any message of any sender.
  bool plentiful() const { return !scarce_; }
  /// The posted receive that a message of `total` bytes goes to, or null.
  RecvRequest* match(Channel& channel, const wire::Segment& first, std::size_t total) {
    RecvRequest* const receive = queues_.of(first).match(&channel, first.tag);
    if (receive == nullptr || receive->kind == IncomingRequest::Kind::receive) [[likely]]
      return receive;
    return cut(static_cast<MultiRecvBuffer&>(*receive), total);
  }
  /// A message of `total` bytes begins: in the receive that it goes to, or else in the store, where it holds `charge`. Neither:
  /// the store is full.
  Assembly begin(Channel& channel, const wire::Segment& first, std::size_t total, std::uint64_t charge);
  /// Keeps a message that no receive matches, with memory for `bytes` of it, of which `payload` are the first; null if
  /// the store is full.
  UnexpectedMessage* store(Channel& channel, const MessageHeader& header, std::size_t bytes,
                           ConstBytes payload);
  /// True if no receive will ever be posted for this message: its collective has failed, or is over.
  bool unwanted(const Channel& channel, const wire::Segment& first) const {
    if (!first.collective()) [[likely]]
      return false;
    CollectiveListener* const collectives = context_.bindings.engine.collectives;
    return collectives == nullptr ||
           !collectives->wanted(first.tag, first.data, context_.handles.is_member(channel));
  }
  /// The last part of a stored message has arrived.
  void completed(UnexpectedMessage& message);
  /// Throws a stored message away; its sender completes it as usual.
  void discard(UnexpectedMessage& message);

  /// The peer is lost: see Messenger::fail(). Messages that have arrived completely stay. So do the headers of the others, so
  /// that the receives that take these messages end with `status`, as they had if they had been posted before.
  void fail_messages(Channel& channel, Status status);
  /// Messages without a receive of which something is still to come.
  static std::size_t incomplete(const Channel& channel);
  /// Receives that wait for this peer alone. Those of collectives end however the peer has ended, since none goes on
  /// with its next incarnation; the application's only if `directed`.
  void fail_directed(const Channel& channel, Status status, bool directed);
  /// No peer is left that could send: receives from any sender end.
  void fail_wildcards(Status status);

  std::size_t stored() const { return messages_.alive(); }
  MatchQueues& queues() { return queues_; }
  const MatchQueues& queues() const { return queues_; }

 private:
  Status post_buffer(Channel* from, const RecvOp& op);
  RecvRequest* cut(MultiRecvBuffer& buffer, std::size_t total);
  void take(RecvRequest& receive, UnexpectedMessage& message);
  void hand_over(RecvRequest& receive, UnexpectedMessage& message);
  void peek(Channel* from, const RecvOp& op);
  void lose(UnexpectedMessage& message, Status status);
  void free_bytes(UnexpectedMessage& message);
  void drop(UnexpectedMessage& message);
  void drop_and_release(UnexpectedMessage& message);
  bool ready_when_scarce(const Channel& channel, const wire::Segment& segment);
  void update_scarce();

  const Context& context_;
  ControlSender& control_;
  CompletionReporter& reporter_;
  PullReceiver& pulls_;
  MatchQueues queues_;
  Pool<UnexpectedMessage> messages_;
  std::size_t bytes_ = 0;  ///< held by messages_
  bool scarce_ = false;    ///< a peer may have filled its part of the store
};

}  // namespace cluster::protocol
