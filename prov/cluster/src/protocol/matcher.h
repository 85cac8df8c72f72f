// Matching: posted receives wait here for their message, and messages for their receive. Receives match in
// the order of posting, messages in the order of arrival. Tagged, untagged and collective ones never mix.
// Peek, claim and discard are receives that only look at messages that have arrived.
//
// The store of unexpected messages is bounded. While it is far from full, ready() is a single test. Beyond
// that, each peer may hold an eighth of it, and all peers outside the address vector together half. A segment
// that would begin one more message stays with its carrier, and so do all ordered segments behind it. Two
// kinds may pass: a message that a posted receive matches, and, up to a hard limit, one of a peer for which
// this side waits. What this side waits for may lie behind that message.
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
  /// Posts or serves a receive. `from` null: from any sender.
  Status receive(Channel* from, const RecvOp& op);
  bool cancel(const void* context);

  // --- arrivals ---
  /// False if the segment begins a message that no receive waits for and that the store has no capacity for:
  /// it stays with its carrier, and all ordered segments behind it, until there is capacity.
  bool ready(const Channel& channel, const wire::Segment& segment) {
    return plentiful() || ready_when_scarce(channel, segment);
  }
  /// True if the store has capacity for any message of any sender.
  bool plentiful() const { return !scarce_; }
  /// Returns the posted receive for a message of `total` bytes, or null.
  RecvRequest* match(Channel& channel, const wire::Segment& first, std::size_t total) {
    RecvRequest* const receive = queues_.of(first).match(&channel, first.tag);
    if (receive == nullptr || receive->kind == IncomingRequest::Kind::receive) [[likely]]
      return receive;
    return cut(static_cast<MultiRecvBuffer&>(*receive), total);
  }
  /// Begins a message of `total` bytes in its receive or else in the store, where it holds `charge`. Returns
  /// neither if the store is full.
  Assembly begin(Channel& channel, const wire::Segment& first, std::size_t total, std::uint64_t charge);
  /// Keeps a message that no receive matches, with memory for `bytes` of it, of which `payload` are the
  /// first; null if the store is full.
  UnexpectedMessage* store(Channel& channel, const MessageHeader& header, std::size_t bytes,
                           ConstBytes payload);
  /// True if no receive will ever be posted for this message: its collective has failed or is over.
  bool unwanted(const Channel& channel, const wire::Segment& first) const {
    if (!first.collective()) [[likely]]
      return false;
    CollectiveListener* const collectives = context_.bindings.engine.collectives;
    return collectives == nullptr ||
           !collectives->wanted(first.tag, first.data, context_.handles.is_member(channel));
  }
  /// The last part of a stored message has arrived.
  void completed(UnexpectedMessage& message);
  /// Drops a stored message. Its sender completes it as usual.
  void discard(UnexpectedMessage& message);

  /// The peer is lost: see Messenger::fail(). Complete messages stay. The headers of incomplete ones stay
  /// too. So the receives that take them end with `status`, as if they had been posted before.
  void fail_messages(Channel& channel, Status status);
  /// Returns the number of messages without a receive of which a part is missing.
  static std::size_t incomplete(const Channel& channel);
  /// Ends receives that wait for this peer alone. Receives of collectives always end, because no collective
  /// goes on with the peer's next incarnation. Those of the application end only if `directed`.
  void fail_directed(const Channel& channel, Status status, bool directed);
  /// Ends receives from any sender, because no peer is left that could send.
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
  std::size_t bytes_ = 0;  ///< bytes that messages_ hold
  bool scarce_ = false;    ///< a peer may have filled its part of the store
};

}  // namespace cluster::protocol
