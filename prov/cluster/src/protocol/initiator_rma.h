// Remote writes and reads that the initiator does alone (Channel::rma): the target's library takes no part,
// so a target that computes or sleeps is read and written at full speed. An operation is over when the call
// that posts it returns; its completion waits in the queue.
//
// What needs the target goes the general way: remote completion data, accesses that the target counts, atomics,
// regions that are out of reach. So do operations of several ranges, each of which is a request of its own
// there: were the first done here and another out of reach, the first would be written again, perhaps after its
// target has seen it and changed what lies there. So does an operation that would overtake something it must not
// overtake: what was posted before it and is still under way, if it is fenced, comes behind a fence, or the
// endpoint was opened with that order (Ordering). What is posted later finds it done.
#pragma once

#include <optional>

#include "protocol/outgoing_requests.h"

namespace cluster::protocol {

class InitiatorRma {
 public:
  InitiatorRma(const Context& context, const OutgoingRequests& outgoing, CompletionReporter& reporter)
      : context_(context), outgoing_(outgoing), reporter_(reporter) {}

  /// True if the operation is over, in one way or the other; else nothing is reported, and the operation is to
  /// be posted as if this had not been tried.
  bool write(Channel& channel, const WriteOp& op);
  bool read(Channel& channel, const ReadOp& op);
  /// The same where the peer's memory is mapped here, by the fewest steps; false: nothing has been done.
  bool store(Channel& channel, const WriteOp& op);
  bool load(Channel& channel, const ReadOp& op);
  /// The same for a range whose turn has come after it had to wait: nothing, or its outcome, which the caller
  /// reports.
  std::optional<Status> write_now(const WriteRequest& request);
  std::optional<Status> read_now(const QueuedRead& queued);
  /// True if something is under way, writes that can be taken back apart, that comes first and was posted before
  /// `own` (null: anything).
  bool comes_behind_others(const Channel& channel, const OutgoingRequest* own, bool is_read) const;

 private:
  void report_done(Completion::Kind kind, const RmaOp& op);
  bool overtakes(const Channel& channel, bool fence, bool is_read) const;
  bool comes_behind(const Channel& channel, const OutgoingRequest* own, bool is_read) const;
  template <typename Access>
  bool act(Channel& channel, const RmaOp& op, Completion::Kind kind, Access&& access);

  const Context& context_;
  const OutgoingRequests& outgoing_;
  CompletionReporter& reporter_;
};

}  // namespace cluster::protocol
