#include "protocol/completion_reporter.h"

#include <algorithm>

#include "protocol/region_table.h"

namespace cluster::protocol {

void CompletionReporter::sent(const SendOp& op) {
  const EndpointBindings& bindings = context_.bindings;
  if (bindings.send_counter != nullptr) bindings.send_counter->count(Status::ok);
  if (!op.report || bindings.sends == nullptr) return;
  Completion completion;
  completion.context = op.context;
  completion.tagged = op.tagged;
  completion.tag = op.tag;
  bindings.sends->push(completion);
}

void CompletionReporter::sent(const SendRequest& request, Status status) {
  const EndpointBindings& bindings = context_.bindings;
  if (bindings.send_counter != nullptr) bindings.send_counter->count(status);
  if (bindings.sends == nullptr || (!request.report && status == Status::ok)) return;
  Completion completion;
  completion.context = request.context;
  completion.tagged = request.tagged;
  completion.status = status;
  completion.tag = request.tag;
  if (status != Status::ok) completion.peer = request.channel->name;
  bindings.sends->push(completion);
}

void CompletionReporter::received(const RecvRequest& receive, Status status) {
  const EndpointBindings& bindings = context_.bindings;
  if (status == Status::ok && receive.total > receive.capacity) status = Status::truncated;
  const bool got_message = status == Status::ok || status == Status::truncated;
  const std::uint64_t source = bindings.want_source && receive.channel != nullptr
                                   ? context_.handles.handle_of(*receive.channel)
                                   : kAddrNotAvail;
  if (bindings.receive_counter != nullptr) bindings.receive_counter->count(status);
  if (bindings.receives != nullptr && (receive.report || status != Status::ok)) {
    Completion completion;
    completion.context = receive.context;
    completion.kind = Completion::Kind::receive;
    completion.tagged = receive.tagged;
    completion.has_data = receive.has_data;
    const bool unknown = bindings.report_unknown_source && status == Status::ok && source == kAddrNotAvail;
    completion.status = unknown ? Status::unknown_source : status;
    completion.releases_buffer = receive.last;
    completion.source = source;
    completion.tag = receive.tag;
    completion.data = receive.data;
    completion.buffer = receive.first_byte();
    if (got_message) {
      completion.length = std::min(receive.total, receive.capacity);
      completion.lost = receive.total - completion.length;
    }
    const Channel* channel = receive.channel != nullptr ? receive.channel : receive.from;
    if (completion.status != Status::ok && channel != nullptr) completion.peer = channel->name;
    bindings.receives->push(completion);
  }
  if (got_message) context_.counters.bytes_received += receive.total;
}

void CompletionReporter::buffer_released(const MultiRecvBuffer& buffer) {
  if (context_.bindings.receives == nullptr) return;
  Completion completion;
  completion.context = buffer.context;
  completion.kind = Completion::Kind::buffer_released;
  completion.releases_buffer = true;
  completion.buffer = buffer.first_byte();
  context_.bindings.receives->push(completion);
}

void CompletionReporter::peeked(const RecvOp& op, const UnexpectedMessage* message) {
  const EndpointBindings& bindings = context_.bindings;
  if (bindings.receives == nullptr || (!op.report && message != nullptr)) return;
  Completion completion;
  completion.context = op.context;
  completion.kind = Completion::Kind::receive;
  completion.tagged = op.tagged;
  completion.tag = op.tag;
  if (message == nullptr) {
    completion.status = Status::no_message;
  } else {
    completion.has_data = message->has_data;
    completion.tag = message->tag;
    completion.data = message->data;
    completion.length = message->total;
    if (bindings.want_source) completion.source = context_.handles.handle_of(*message->channel);
  }
  bindings.receives->push(completion);
}

RmaGroup* CompletionReporter::group_for(const RmaOp& op) {
  if (op.remote.size() <= 1) return nullptr;
  RmaGroup* group = groups_.acquire();
  group->context = op.context;
  group->left = op.remote.size();
  for (const RmaIov& remote : op.remote) group->unrequested += remote.length > 0;
  group->report = op.report;
  return group;
}

void CompletionReporter::rma_completed(Completion::Kind kind, RmaGroup* group, void* context, bool report,
                                       Status status, const Channel& channel) {
  if (group != nullptr) {
    if (group->status == Status::ok) group->status = status;
    if (--group->left > 0) return;
    context = group->context;
    report = group->report;
    status = group->status;
    groups_.release(*group);
  }
  const EndpointBindings& bindings = context_.bindings;
  const bool reads = kind == Completion::Kind::read || kind == Completion::Kind::fetch;
  Counter* counter = reads ? bindings.read_counter : bindings.write_counter;
  if (counter != nullptr) counter->count(status);
  if (bindings.sends == nullptr || (!report && status == Status::ok)) return;
  Completion completion;
  completion.context = context;
  completion.kind = kind;
  completion.status = status;
  if (status != Status::ok) completion.peer = channel.name;
  bindings.sends->push(completion);
}

void CompletionReporter::written_by_peer(const Channel& channel, const RemoteWrite& write) {
  context_.counters.bytes_received += write.iov.length;
  if (write.more) return;
  count_write(write.iov);
  const EndpointBindings& bindings = context_.bindings;
  if (!write.has_data || bindings.receives == nullptr) return;
  Completion completion;
  completion.kind = Completion::Kind::remote_write;
  completion.has_data = true;
  completion.data = write.data;
  completion.length = write.write_length;
  if (bindings.want_source) completion.source = context_.handles.handle_of(channel);
  bindings.receives->push(completion);
}

void CompletionReporter::count_write(const RmaIov& iov) {
  const EndpointBindings& bindings = context_.bindings;
  if (bindings.remote_write_counter != nullptr) bindings.remote_write_counter->count(Status::ok);
  bindings.regions->with(iov, Access::write, [](std::byte*, const MemoryRegion& region) {
    if (region.writes != nullptr) region.writes->count(Status::ok);
  });
}

void CompletionReporter::read_by_peer(const RmaIov& iov) {
  const EndpointBindings& bindings = context_.bindings;
  if (bindings.remote_read_counter != nullptr) bindings.remote_read_counter->count(Status::ok);
  bindings.regions->with(iov, Access::read, [](std::byte*, const MemoryRegion& region) {
    if (region.reads != nullptr) region.reads->count(Status::ok);
  });
}

}  // namespace cluster::protocol
