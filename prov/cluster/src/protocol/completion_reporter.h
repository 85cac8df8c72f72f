// Reports outcomes in completion queues and counters: the outcomes of this side's operations, and of peers'
// accesses to registered memory. This class decides what an entry contains. Its callers decide when an
// operation is complete.
//
// Invariant: an entry is in its queue before the counter of the same operation is incremented. Therefore a
// thread that waits for the counter finds the entry, even if the reporting thread has not returned yet.
// (Entries in DirectSuccesses are an exception: a caller that is reading the queue gets them.)
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
  /// Reports a message that has no SendRequest. `culprit`: if a message to a group has failed, the member
  /// that did not get it.
  void sent(const SendOp& op, Status status = Status::ok, const SocketAddress& culprit = {});
  void sent(const SendRequest& request, Status status);
  /// Does what sent() does with Status::ok, except that `direct` decides where the entry goes. The request
  /// must not be deferred.
  void succeeded(const SendRequest& request, DirectSuccesses& direct) {
    const EndpointBindings& bindings = context_.bindings;
    if (request.internal) [[unlikely]]
      return bindings.engine.internal->sent(request.context, Status::ok);
    if (bindings.tx_queue != nullptr && request.report) {
      direct.report(*bindings.tx_queue,
                    {.context = request.context, .tagged = request.tagged, .tag = request.tag});
    }
    if (bindings.send_counter != nullptr) bindings.send_counter->count(Status::ok);
  }
  void received(const RecvRequest& receive, Status status);
  /// Reports the release of an FI_MULTI_RECV buffer. Must not be called if the entry of the buffer's last
  /// message has already reported the release.
  void buffer_released(const MultiRecvBuffer& buffer);
  /// Reports the outcome of a peek. `message`: the message that matches, or null.
  void peeked(const RecvOp& op, const UnexpectedMessage* message);

  // --- RMA and atomics of this side ---
  /// Returns an RmaGroup for an operation that has several remote ranges or belongs to a deferred work queue.
  /// Returns null for any other operation. rma_completed() releases the RmaGroup after its last range.
  RmaGroup* group_for(const RmaOp& op);
  /// Counts one range of an operation as complete. After the operation's last range, reports the operation.
  void rma_completed(Completion::Kind kind, RmaGroup* group, void* context, bool report, Status status,
                     const Channel& channel);
  /// Reports the success of an operation that has no RmaGroup.
  void rma_succeeded(Completion::Kind kind, void* context, bool report) {
    const EndpointBindings& bindings = context_.bindings;
    if (report && bindings.tx_queue != nullptr) {
      bindings.tx_queue->push_success({.context = context, .kind = kind});
    }
    Counter* const counter = kind == Completion::Kind::read ? bindings.read_counter : bindings.write_counter;
    if (counter != nullptr) counter->count(Status::ok);
  }

  /// Does what rma_succeeded() does for a write, except that `direct` decides where the entry goes.
  void write_succeeded(const WriteRequest& request, DirectSuccesses& direct) {
    const EndpointBindings& bindings = context_.bindings;
    if (request.report && bindings.tx_queue != nullptr)
      direct.report(*bindings.tx_queue, {.context = request.context, .kind = Completion::Kind::write});
    if (bindings.write_counter != nullptr) bindings.write_counter->count(Status::ok);
  }

  // --- RMA and atomics of peers ---
  /// Counts the bytes of one range of a peer's write, which is now in `region`. After the last range, reports
  /// the write. `region` is null if the region was closed meanwhile.
  void written_by_peer(const Channel& channel, const RemoteWrite& write, const MemoryRegion* region);
  /// Counts a peer's access in the counters of the endpoint and of the region.
  void accessed_by_peer(Access access, const MemoryRegion* region);

 private:
  template <typename Message>
  void report_sent(const Message& message, Status status, const SocketAddress& culprit);

  const Context& context_;
  Pool<RmaGroup> groups_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace cluster::protocol
