// Reports every outcome: entries of completion queues and ticks of counters, of this side's operations and of
// what peers did to registered memory. It decides what an entry contains; its callers
// decide when an operation is complete.
//
// Invariant: an entry is in its queue before the counter of the same operation steps. Another thread that waits
// for the counter finds the entry at once, though the thread that reports is still inside.
#pragma once

#include "base/pool.h"
#include "protocol/channel.h"
#include "protocol/context.h"
#include "protocol/region_table.h"

namespace cluster::protocol {

class CompletionReporter {
 public:
  explicit CompletionReporter(const Context& context) : context_(context) {}

  // --- messages ---
  /// A message without a request: its buffer is free, and no more was asked for. `culprit`: the member of a group that did not
  /// get it.
  void sent(const SendOp& op, Status status = Status::ok, const SocketAddress& culprit = {});
  void sent(const SendRequest& request, Status status);
  void received(const RecvRequest& receive, Status status);
  /// The entry that releases a buffer for many messages, where its last message's entry did not.
  void buffer_released(const MultiRecvBuffer& buffer);
  /// The outcome of a peek; `message` null: none matches.
  void peeked(const RecvOp& op, const UnexpectedMessage* message);

  // --- RMA and atomics of this side ---
  /// For an operation of several remote ranges; null for others. It is released with the last range.
  RmaGroup* group_for(const RmaOp& op);
  /// One range of an operation is complete: reports the operation when it was the last.
  void rma_completed(Completion::Kind kind, RmaGroup* group, void* context, bool report, Status status,
                     const Channel& channel);
  /// The same, at once, for one of one range that has succeeded.
  void rma_succeeded(Completion::Kind kind, void* context, bool report) {
    const EndpointBindings& bindings = context_.bindings;
    if (report && bindings.tx_queue != nullptr) {
      bindings.tx_queue->push_success({.context = context, .kind = kind});
    }
    Counter* const counter = kind == Completion::Kind::read ? bindings.read_counter : bindings.write_counter;
    if (counter != nullptr) counter->count(Status::ok);
  }

  // --- RMA and atomics of peers ---
  /// A range of a peer's write has arrived in this region; null: it has been closed meanwhile.
  void written_by_peer(const Channel& channel, const RemoteWrite& write, const MemoryRegion* region);
  /// A peer has read a range of the region, or changed it by an atomic operation.
  void accessed_by_peer(Access access, const MemoryRegion* region);

 private:
  template <typename Message>
  void report_sent(const Message& message, Status status, const SocketAddress& culprit);

  const Context& context_;
  Pool<RmaGroup> groups_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace cluster::protocol
