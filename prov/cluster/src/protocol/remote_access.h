// Remote writes and reads of this side. Each access goes the first of these two ways that is possible:
//
//   at once      the transport accesses the peer's memory itself (Channel::rma.reached). The access is fast
//                even while the target computes or sleeps. The operation is complete when it is submitted,
//                or it is pending until the transport reports its end
//   by requests  the target's library performs the access (rma_target.h). Small writes are transmitted at
//                once, in order with messages. Large writes are announced, and the target pulls them. This
//                side pulls the bytes of reads in the same way as messages
//
// An operation goes the second way if it has remote completion data, if it must wait for earlier operations,
// if the target counts the access, or if the transport cannot access the region. An operation with several
// ranges also goes the second way, with one request for each range. (Suppose such an operation went the first
// way, and the transport had written the first range but could not access the second. A request would then
// write the first range again, although the target may have seen and changed its bytes.) When a write request
// is at the head of the queue and may begin, it tries the first way for its own range. A read request that
// had to wait does the same.
//
// Two kinds of short accesses do not come here if a lane takes them: accesses to a mapped region of a peer on
// this node (shm/access_lane.h), and writes to a peer on another node (short_writes.h). The lanes obey the
// same rules.
//
// For all other accesses, this class decides whether an access may take effect now. An access must not
// overtake an earlier operation in progress if the access is fenced, if a fenced operation waits before it,
// or if the Ordering says so. Some operations in progress are known only to the transport, for example
// messages in a ring and pending puts. AccessTerms tell the transport which of these the access must not
// overtake. A transport that cannot guarantee this refuses the access. This class counts pending accesses, so
// that later operations can wait for them. A pending get counts as a read. A pending put of a request counts
// as an announced write. A pending put without a request also counts as an announced write, unless the
// transport keeps puts in order (MemoryAccess::in_order). A message waits until all earlier announced writes
// are complete. Therefore the target always sees a message after the writes before it.
#pragma once

#include "protocol/messenger_parts.h"

namespace cluster::protocol {

class RemoteAccess : MessengerParts {
 public:
  explicit RemoteAccess(const MessengerParts& parts) : MessengerParts(parts) {}

  /// Tries the first of the two ways above. Returns true if the operation is complete, has failed, or is
  /// pending. Returns false if the operation has to go the second way.
  bool write_at_once(Channel& channel, const WriteOp& op);
  bool read_at_once(Channel& channel, const ReadOp& op);
  Status write(Channel& channel, const WriteOp& op) {
    return write_at_once(channel, op) ? Status::ok : request(channel, op);
  }
  /// Sends the operation the second way. Operations of deferred work queues must go this way, because an
  /// AccessTicket without a request cannot say that the operation is deferred.
  Status request(Channel& channel, const WriteOp& op);
  Status request(Channel& channel, const ReadOp& op);
  Status read(Channel& channel, const ReadOp& op) {
    return read_at_once(channel, op) ? Status::ok : request(channel, op);
  }

  /// Posts as much of the request as the carrier takes. The request must be at the head of the ordered queue.
  /// Returns true if the request has left the queue.
  bool advance(WriteRequest& request);
  /// Begins a queued read. The read must be at the head of the ordered queue, and must_wait() must be false.
  void start(QueuedRead& queued);

  /// Returns true if accesses that were submitted to transports are not complete.
  bool pending() const { return pending_ != 0; }
  /// Called by the transport when a pending access has ended.
  void over(Channel& channel, carrier::AccessTicket ticket, Status status);

 private:
  using Kind = OutgoingRequest::Kind;
  using State = OutgoingRequest::State;

  template <bool reads>
  bool may_go(const Channel& channel, bool fence) const;
  template <bool reads>
  AccessTerms terms(const Channel& channel, bool copied) const;
  template <bool reads>
  bool account(Channel& channel, const RmaOp& op, Outcome outcome);
  static bool comes_first(const OutgoingRequest& before, bool is_read, const Ordering& order);
  bool comes_last(const Channel& channel, const OutgoingRequest* own, bool reads) const;
  void begun(Channel& channel, bool reads);
  void denied(Channel& channel, Completion::Kind kind, const RmaOp& op);

  void begin(Channel& channel, const WriteOp& op, const RmaRange& range);
  void begin(Channel& channel, const ReadOp& op, const RmaRange& range);
  bool try_write(WriteRequest& request);
  bool try_read(QueuedRead& queued);
  bool account(OutgoingRequest& request, Outcome outcome);
  void finish(OutgoingRequest& request, Status status);

  std::size_t pending_ = 0;
};

template <bool reads>
inline AccessTerms RemoteAccess::terms(const Channel& channel, bool copied) const {
  const Ordering& order = context_.bindings.ordering;
  // A message that was posted at once may have no request. In this case only the carrier knows whether the
  // message has arrived.
  return {copied, reads ? order.read_after_send : order.write_after_send,
          (reads ? order.read_after_write : order.write_after_write) && channel.rma.puts_pending != 0};
}

/// Returns false if the access must wait. Otherwise terms() says which operations the access must not
/// overtake.
template <bool reads>
inline bool RemoteAccess::may_go(const Channel& channel, bool fence) const {
  if (channel.rma.reads != 0) [[unlikely]] {
    const Ordering& order = context_.bindings.ordering;
    if (fence || (reads ? order.read_after_read : order.write_after_read)) return false;
  }
  if (fence && (!channel.outgoing.empty() || channel.rma.puts_pending != 0)) return false;
  return channel.outgoing.empty() || comes_last(channel, nullptr, reads);
}

inline void RemoteAccess::begun(Channel& channel, bool reads) {
  ++pending_;
  if (reads) {
    ++channel.rma.gets_pending;
    ++channel.rma.reads;
  } else {
    ++channel.rma.puts_pending;
    if (!channel.rma.reached.access->in_order()) ++channel.rma.writes_announced;
  }
}

template <bool reads>
inline bool RemoteAccess::account(Channel& channel, const RmaOp& op, Outcome outcome) {
  constexpr auto kReported = reads ? Completion::Kind::read : Completion::Kind::write;
  if (outcome == Outcome::unsuited) return false;
  if (!reads) context_.counters.bytes_sent += op.length;
  if (outcome == Outcome::done) [[likely]] {
    ++context_.counters.rma_alone;
    reporter_.rma_succeeded(kReported, op.context, op.report);
  } else if (outcome == Outcome::pending) {
    begun(channel, reads);
  } else {
    denied(channel, kReported, op);
  }
  return true;
}

inline bool RemoteAccess::write_at_once(Channel& channel, const WriteOp& op) {
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr || op.has_data || op.remote.size() != 1) return false;
  if (!may_go<false>(channel, op.fence)) return false;
  const RmaIov& range = op.remote.front();
  return account<false>(channel, op,
                        access->put(range, {op.slices, 0, range.length, op.handles},
                                    terms<false>(channel, op.inject), {op.context, op.report, false}));
}

/// A read of no bytes completes without access to a region. The same is true on the second way.
inline bool RemoteAccess::read_at_once(Channel& channel, const ReadOp& op) {
  MemoryAccess* const access = channel.rma.reached.access.get();
  if (access == nullptr || op.remote.size() != 1) return false;
  if (!may_go<true>(channel, op.fence)) return false;
  const RmaIov& range = op.remote.front();
  if (range.length == 0) return account<true>(channel, op, Outcome::done);
  return account<true>(channel, op,
                       access->get(range, {op.slices, 0, op.handles}, terms<true>(channel, false),
                                   {op.context, op.report, true}));
}

}  // namespace cluster::protocol
