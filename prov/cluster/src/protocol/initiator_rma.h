// Remote writes and reads that need no help of the target's library: the transport reaches the peer's memory
// (Channel::rma.reached), so a target that computes or sleeps is read and written at full speed. Such an operation is
// over when it is submitted, or pending until the transport reports it. What becomes of it is known here alone.
//
// What needs the target goes the general way: remote completion data, accesses that the target counts, atomics,
// regions that are out of reach. So do operations of several ranges, each of which is a request of its own
// there: were the first done here and another out of reach, the first would be written again, perhaps after its
// target has seen it and changed what lies there.
//
// This is the one place that decides whether an access may take effect now. It must not overtake what was posted before
// it and is still under way, if it is fenced, comes behind a fence, or the endpoint was opened with that order
// (Ordering). Where only the transport can see what is under way (messages in a ring, pending puts), the access says what
// it must come after, and a transport that cannot promise that leaves it. What is posted later finds the access done, or
// counts it: a pending get is a read under way, a pending put without an order a write under way.
#pragma once

#include "protocol/outgoing_requests.h"
#include "protocol/pull_receiver.h"

namespace cluster::protocol {

class InitiatorRma {
 public:
  InitiatorRma(const Context& context, OutgoingRequests& outgoing, CompletionReporter& reporter,
               PullReceiver& pulls)
      : context_(context), outgoing_(outgoing), reporter_(reporter), pulls_(pulls) {}

  /// True if the operation is over, in one way or the other, or pending; else nothing is reported, and the operation is
  /// to be posted as if this had not been tried.
  bool write(Channel& channel, const WriteOp& op);
  bool read(Channel& channel, const ReadOp& op);
  /// The same for a request whose turn has come after it had to wait.
  bool write_now(WriteRequest& request);
  bool read_now(QueuedRead& queued);

  /// Some are pending.
  bool pending() const { return pending_ != 0; }
  /// One that was pending is not any more.
  void over(Channel& channel, carrier::AccessTicket ticket, Status status);

 private:
  enum class Kind : bool { write, read };

  template <Kind kind>
  bool may_go(const Channel& channel, bool fence) const;
  template <Kind kind>
  bool may_go_behind(const Channel& channel, const OutgoingRequest* own) const;
  template <Kind kind>
  AccessTerms terms(const Channel& channel, bool copied) const;
  template <Kind kind>
  bool comes_last(const Channel& channel, const OutgoingRequest* own) const;
  template <Kind kind>
  bool account(Channel& channel, const RmaOp& op, Outcome outcome);
  void begun(Channel& channel, Kind kind);
  void denied(Channel& channel, Completion::Kind kind, const RmaOp& op);
  void finish_read(QueuedRead& queued, Status status);

  const Context& context_;
  OutgoingRequests& outgoing_;
  CompletionReporter& reporter_;
  PullReceiver& pulls_;
  std::size_t pending_ = 0;
};

template <InitiatorRma::Kind kind>
inline AccessTerms InitiatorRma::terms(const Channel& channel, bool copied) const {
  const Ordering& order = context_.bindings.ordering;
  constexpr bool kReads = kind == Kind::read;
  // Messages that were sent at once are not among the requests: they lie in the carrier.
  return {copied, kReads ? order.read_after_send : order.write_after_send,
          (kReads ? order.read_after_write : order.write_after_write) && channel.rma.puts_pending != 0};
}

template <InitiatorRma::Kind kind>
inline bool InitiatorRma::may_go_behind(const Channel& channel, const OutgoingRequest* own) const {
  return channel.outgoing.empty() || comes_last<kind>(channel, own);
}

/// False: the access must wait. Else terms() says what it must come after.
template <InitiatorRma::Kind kind>
inline bool InitiatorRma::may_go(const Channel& channel, bool fence) const {
  if (channel.rma.reads != 0) [[unlikely]] {
    const Ordering& order = context_.bindings.ordering;
    if (fence || (kind == Kind::read ? order.read_after_read : order.write_after_read)) return false;
  }
  if (fence && (!channel.outgoing.empty() || channel.rma.puts_pending != 0)) return false;
  return may_go_behind<kind>(channel, nullptr);
}

template <InitiatorRma::Kind kind>
inline bool InitiatorRma::account(Channel& channel, const RmaOp& op, Outcome outcome) {
  constexpr auto kReported = kind == Kind::read ? Completion::Kind::read : Completion::Kind::write;
  if (outcome == Outcome::unsuited) return false;
  if (kind == Kind::write) context_.counters.bytes_sent += op.length;
  if (outcome == Outcome::done) [[likely]] {
    ++context_.counters.rma_alone;
    reporter_.rma_succeeded(kReported, op.context, op.report);
  } else if (outcome == Outcome::pending) {
    begun(channel, kind);
  } else {
    denied(channel, kReported, op);
  }
  return true;
}

inline bool InitiatorRma::write(Channel& channel, const WriteOp& op) {
  MemoryAccess* const access = channel.rma.reached.access.get();
  // If it has to go the general way after all, it must be taken there: what is refused has no effect.
  if (access == nullptr || op.has_data || op.remote.size() != 1 || outgoing_.left() == 0) return false;
  if (!may_go<Kind::write>(channel, op.fence)) return false;
  const RmaIov& range = op.remote.front();
  return account<Kind::write>(
      channel, op,
      access->put(range, {op.slices, 0, range.length, op.handles}, terms<Kind::write>(channel, op.inject),
                  {op.context, op.report, false}));
}

/// A read of nothing is complete without a region, as it is in the general way.
inline bool InitiatorRma::read(Channel& channel, const ReadOp& op) {
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr || op.remote.size() != 1 || outgoing_.left() == 0) return false;
  if (!may_go<Kind::read>(channel, op.fence)) return false;
  const RmaIov& range = op.remote.front();
  if (range.length == 0) return account<Kind::read>(channel, op, Outcome::done);
  return account<Kind::read>(channel, op,
                             access->get(range, {op.slices, 0, op.handles}, terms<Kind::read>(channel, false),
                                         {op.context, op.report, true}));
}

}  // namespace cluster::protocol
