#include "protocol/completion_reporter.h"

#include <algorithm>

namespace cluster::protocol {
namespace {

void count(Counter* counter, Status status) {
  if (counter != nullptr) counter->count(status);
}

}  // namespace

/// `culprit`: if the message has failed, the peer that the failure concerns.
template <typename Message>
void CompletionReporter::report_sent(const Message& message, Status status, const SocketAddress& culprit) {
  const EndpointBindings& bindings = context_.bindings;
  if (message.internal) [[unlikely]]
    return bindings.engine.internal->sent(message.context, status);
  const bool failed = status != Status::ok;
  if (message.deferred || (failed && bindings.tx_queue != nullptr)) [[unlikely]] {
    Completion completion{
        .context = message.context, .tagged = message.tagged, .status = status, .tag = message.tag};
    if (failed) completion.peer = culprit;
    if (message.deferred) return bindings.deferred->completed(completion, bindings.tx_queue);
    bindings.tx_queue->push(completion);
  } else if (bindings.tx_queue != nullptr && message.report) {
    bindings.tx_queue->push_success(
        {.context = message.context, .tagged = message.tagged, .tag = message.tag});
  }
  count(bindings.send_counter, status);
}

void CompletionReporter::sent(const SendOp& op, Status status, const SocketAddress& culprit) {
  report_sent(op, status, culprit);
}

void CompletionReporter::sent(const SendRequest& request, Status status) {
  report_sent(request, status, request.channel->name);
}

void CompletionReporter::received(const RecvRequest& receive, Status status) {
  const EndpointBindings& bindings = context_.bindings;
  if (status == Status::ok && receive.total > receive.capacity) status = Status::truncated;
  const bool got_message = status == Status::ok || status == Status::truncated;
  if (receive.internal) [[unlikely]] {
    if (got_message) context_.counters.bytes_received += receive.total;
    return bindings.engine.internal->received(receive.context, status, receive.total);
  }
  const std::uint64_t source = bindings.want_source && receive.channel != nullptr
                                   ? context_.handles.source_of(*receive.channel)
                                   : kAddrNotAvail;
  if (receive.deferred || (bindings.rx_queue != nullptr && (receive.report || status != Status::ok))) {
    // The peer may be in the address vector without a user identifier. In this case `source` may be
    // kAddrNotAvail, too. So this code also asks for the handle.
    const bool unknown = bindings.report_unknown_source && status == Status::ok && source == kAddrNotAvail &&
                         context_.handles.handle_of(*receive.channel) == kAddrNotAvail;
    Completion completion{.context = receive.context,
                          .kind = Completion::Kind::receive,
                          .tagged = receive.tagged,
                          .has_data = receive.has_data,
                          .releases_buffer = receive.last,
                          .status = unknown ? Status::unknown_source : status,
                          .tag = receive.tag,
                          .data = receive.data,
                          .buffer = receive.first_byte(),
                          .source = source};
    if (got_message) {
      completion.length = std::min(receive.total, receive.capacity);
      completion.lost = receive.total - completion.length;
    }
    const Channel* channel = receive.channel != nullptr ? receive.channel : receive.from;
    if (completion.status != Status::ok && channel != nullptr) completion.peer = channel->name;
    if (receive.deferred) [[unlikely]] {
      if (got_message) context_.counters.bytes_received += receive.total;
      return bindings.deferred->completed(completion, bindings.rx_queue);
    }
    bindings.rx_queue->push(completion);
  }
  count(bindings.receive_counter, status);
  if (got_message) context_.counters.bytes_received += receive.total;
}

void CompletionReporter::buffer_released(const MultiRecvBuffer& buffer) {
  if (context_.bindings.rx_queue == nullptr) return;
  context_.bindings.rx_queue->push({.context = buffer.context,
                                    .kind = Completion::Kind::buffer_released,
                                    .releases_buffer = true,
                                    .buffer = buffer.first_byte()});
}

void CompletionReporter::peeked(const RecvOp& op, const UnexpectedMessage* message) {
  const EndpointBindings& bindings = context_.bindings;
  if (bindings.rx_queue == nullptr || (!op.report && message != nullptr)) return;
  Completion completion{
      .context = op.context, .kind = Completion::Kind::receive, .tagged = op.tagged, .tag = op.tag};
  if (message == nullptr) {
    completion.status = Status::no_message;
  } else {
    completion.has_data = message->has_data;
    completion.tag = message->tag;
    completion.data = message->data;
    completion.length = message->total;
    if (bindings.want_source) completion.source = context_.handles.source_of(*message->channel);
  }
  bindings.rx_queue->push(completion);
}

RmaGroup* CompletionReporter::group_for(const RmaOp& op) {
  if (op.remote.size() <= 1 && !op.deferred) return nullptr;
  RmaGroup* group = groups_.acquire();
  group->context = op.context;
  group->left = op.remote.size();
  for (const RmaIov& remote : op.remote) group->unrequested += remote.length > 0;
  group->report = op.report;
  group->deferred = op.deferred;
  return group;
}

void CompletionReporter::rma_completed(Completion::Kind kind, RmaGroup* group, void* context, bool report,
                                       Status status, const Channel& channel) {
  bool deferred = false;
  if (group != nullptr) {
    if (group->status == Status::ok) group->status = status;
    if (--group->left > 0) return;
    context = group->context;
    report = group->report;
    status = group->status;
    deferred = group->deferred;
    groups_.release(*group);
  }
  const EndpointBindings& bindings = context_.bindings;
  const bool reads = kind == Completion::Kind::read || kind == Completion::Kind::fetch;
  if (deferred || (bindings.tx_queue != nullptr && (report || status != Status::ok))) {
    Completion completion{.context = context, .kind = kind, .status = status};
    if (status != Status::ok) completion.peer = channel.name;
    if (deferred) [[unlikely]]
      return bindings.deferred->completed(completion, bindings.tx_queue);
    bindings.tx_queue->push(completion);
  }
  count(reads ? bindings.read_counter : bindings.write_counter, status);
}

void CompletionReporter::written_by_peer(const Channel& channel, const RemoteWrite& write,
                                         const MemoryRegion* region) {
  context_.counters.bytes_received += write.iov.length;
  if (!write.last) return;
  const EndpointBindings& bindings = context_.bindings;
  if (write.has_data && bindings.rx_queue != nullptr) {
    Completion completion{.kind = Completion::Kind::remote_write,
                          .has_data = true,
                          .data = write.data,
                          .length = write.length_so_far};
    if (bindings.want_source) completion.source = context_.handles.source_of(channel);
    bindings.rx_queue->push(completion);
  }
  accessed_by_peer(Access::write, region);
}

void CompletionReporter::accessed_by_peer(Access access, const MemoryRegion* region) {
  const RemoteAccessCounters& counters = context_.bindings.remote_access;
  const bool write = access == Access::write;
  count(write ? counters.writes : counters.reads, Status::ok);
  if (region != nullptr) count(write ? region->writes : region->reads, Status::ok);
}

}  // namespace cluster::protocol
