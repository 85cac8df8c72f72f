// Reports every outcome in completion queues and counters: of this side's operations, and of peers' accesses
// to registered memory. It decides what an entry contains; its callers decide when an operation is complete.
//
// Invariant: an entry is in its queue before the counter of the same operation steps. A thread that waits for
// the counter then finds the entry at once, even if the reporting thread is not finished.
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
  /// Reports a message without a request, of which only the buffer had to become free. `culprit`: the member
  /// of a group that did not get the message.
  void sent(const SendOp& op, Status status = Status::ok, const SocketAddress& culprit = {});
  void sent(const SendRequest& request, Status status);
  void received(const RecvRequest& receive, Status status);
  /// Reports that a buffer for many messages is free, if the entry of its last message did not.
  void buffer_released(const MultiRecvBuffer& buffer);
  /// Reports the outcome of a peek. `message` null: no message matches.
  void peeked(const RecvOp& op, const UnexpectedMessage* message);

  // --- RMA and atomics of this side ---
  /// Returns a group for an operation of several remote ranges, or null for others. The last range releases
  /// it.
  RmaGroup* group_for(const RmaOp& op);
  /// Completes one range of an operation. Reports the operation with the last range.
  void rma_completed(Completion::Kind kind, RmaGroup* group, void* context, bool report, Status status,
                     const Channel& channel);
  /// Reports at once the success of an operation with one range.
  void rma_succeeded(Completion::Kind kind, void* context, bool report) {
    const EndpointBindings& bindings = context_.bindings;
    if (report && bindings.tx_queue != nullptr) {
      bindings.tx_queue->push_success({.context = context, .kind = kind});
    }
    Counter* const counter = kind == Completion::Kind::read ? bindings.read_counter : bindings.write_counter;
    if (counter != nullptr) counter->count(Status::ok);
  }

  // --- RMA and atomics of peers ---
  /// Reports that a range of a peer's write has arrived in `region`. Null: the region has been closed
  /// meanwhile.
  void written_by_peer(const Channel& channel, const RemoteWrite& write, const MemoryRegion* region);
  /// Reports that a peer has read a range of the region, or changed it by an atomic operation.
  void accessed_by_peer(Access access, const MemoryRegion* region);

 private:
  template <typename Message>
  void report_sent(const Message& message, Status status, const SocketAddress& culprit);

  const Context& context_;
  Pool<RmaGroup> groups_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace cluster::protocol
