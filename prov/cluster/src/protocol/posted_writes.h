// Small writes to a peer of this node that travel through the ring without an answer: the initiator has checked
// that the region takes them, sees when the target has taken them, and takes back those that lie there too long
// (carrier/recall.h) to do them alone, as long ones are done (RemoteRegions). A target that polls is written
// to for the price of a message; one that computes or sleeps, for that of a system call.
//
//   post()    -> the ring     until the target is found inattentive; from then on false, until it has
//                             taken something again
//   settle()  -> completions  of those taken; after kPatience without one, those left are taken back
//   recall()  -> the same at once: the caller is about to sleep
//
// Invariants. Writes lie here in the order of their numbers, and complete in this order. A write is executed
// once: by the target, or, while the target takes nothing, here. When it is taken back it overtakes whatever
// lies in the ring before it, so it is only posted where it may (Ordering). What is posted behind it to the same
// peer goes through the same ring; what does not (InitiatorRma, fenced operations) asks RmaState::posted.
#pragma once

#include <optional>
#include <vector>

#include "protocol/channel.h"
#include "protocol/completion_reporter.h"
#include "protocol/context.h"
#include "protocol/initiator_rma.h"

namespace cluster::protocol {

class PostedWrites {
 public:
  /// Longer ones are cheaper by a system call, which copies once.
  static constexpr std::size_t kLengthMax = 8 * 1024;
  /// In ticks: 8 to 30 us, several times what a target takes that polls.
  static constexpr std::uint64_t kPatience = 1 << 15;

  PostedWrites(const Context& context, const InitiatorRma& alone, CompletionReporter& reporter)
      : context_(context), alone_(alone), reporter_(reporter) {}

  /// False: nothing has been done, the write has to take another way.
  bool post(Channel& channel, const WriteOp& op);
  /// `ticks`: now; nothing if the caller does not know.
  void settle(std::optional<std::uint64_t> ticks);
  /// False: a target is taking segments, and the rest will be settled soon.
  bool recall();
  /// The peer takes nothing any more: what it has taken is complete.
  void settle_last(Channel& channel);
  /// The peer is lost.
  void fail(Channel& channel, Status status);

  bool idle() const { return channels_.empty(); }

 private:
  static bool full(const PostedState& posted, const Recall& recall);
  void reserve(PostedState& posted);
  bool may_be_taken_back(const Channel& channel) const;
  bool take_back(Channel& channel);
  bool take_back_some(Channel& channel);
  void complete_taken(Channel& channel);
  void complete_front(Channel& channel, Status status);
  template <typename Visit>
  void each_channel(Visit&& visit);

  const Context& context_;
  const InitiatorRma& alone_;
  CompletionReporter& reporter_;
  std::vector<Channel*> channels_;  ///< those with writes that are not complete
};

}  // namespace cluster::protocol
