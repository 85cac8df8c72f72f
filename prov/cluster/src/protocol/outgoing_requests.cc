#include "protocol/outgoing_requests.h"

#include "base/end_of_memory.h"

namespace cluster::protocol {

bool OutgoingRequests::blocked_by_rma(const Channel& channel, Kind kind) const {
  const Ordering& order = context_.bindings.ordering;
  const bool reads = kind == Kind::queued_read || kind == Kind::atomic;
  const bool writes = kind == Kind::write || kind == Kind::atomic;
  if (channel.rma.writes_announced > 0) {
    if (kind == Kind::message) return true;
    if ((reads && order.read_after_write) || (writes && order.write_after_write)) return true;
  }
  if (channel.rma.reads == 0) return false;
  return (kind == Kind::message && order.send_after_read) || (reads && order.read_after_read) ||
         (writes && order.write_after_read);
}

/// A fenced operation begins when all earlier operations are complete. The last range of a write waits until
/// all other ranges of the write are complete. When the last range arrives, the target reports and counts the
/// write. The target must not report a write that has failed.
bool OutgoingRequests::must_wait(const OutgoingRequest& request) const {
  const Channel& channel = *request.channel;
  if (request.kind == Kind::write) {
    const auto& write = static_cast<const WriteRequest&>(request);
    const bool last_of_several = write.range.last && !write.range.first;
    if (last_of_several && write.range.group->left > 1) return true;
  }
  const bool first =
      channel.outgoing.front() == &request && channel.rma.reads == 0 && channel.rma.puts_pending == 0;
  if (request.fence && !first) return true;
  if (request.kind == Kind::queued_read && channel.rma.reads >= kReadsMax) return true;
  return blocked(channel, request.kind);
}

bool OutgoingRequests::keep_copy(PulledRequest& request, const Gather& payload) {
  if (!enough_memory_for(
          [&] { request.copy = std::make_unique_for_overwrite<std::byte[]>(payload.length); })) {
    complete(request, Status::no_memory);
    return false;
  }
  payload.copy_to(request.copy.get());
  request.slices.replace({request.copy.get(), payload.length});
  request.base = 0;
  return true;
}

/// Returns true if CompletionReporter::succeeded() may report the message now. For that, the carrier has
/// taken the whole message, the peer has acknowledged all of it, and the message neither needs a `done` nor
/// is deferred.
bool OutgoingRequests::whole(const SendRequest& request) {
  return request.state == OutgoingRequest::State::posted && request.unanswered == 0 &&
         !request.queue_hook.linked && request.status == Status::ok &&
         request.completion_level != CompletionLevel::delivery && !request.deferred;
}

void OutgoingRequests::acked(Token token, DirectSuccesses& direct) {
  OutgoingRequest* const request = pool_.find(static_cast<std::uint32_t>(token));
  if (request == nullptr) return;  // its channel has failed meanwhile
  --request->unanswered;
  if (request->kind == Kind::message) [[likely]] {
    const auto& message = static_cast<const SendRequest&>(*request);
    if (message.alone || whole(message)) [[likely]] {
      message.channel->outgoing.remove(*request);
      reporter_.succeeded(message, direct);
      return message.alone ? pool_.keep(*request) : pool_.release(*request);
    }
  }
  settle(static_cast<PulledRequest&>(*request));
}

void OutgoingRequests::settle(PulledRequest& request) {
  if (request.state == OutgoingRequest::State::queued || request.unanswered > 0) return;
  const bool needs_done =
      request.state == OutgoingRequest::State::announced || request.kind == Kind::write ||
      static_cast<const SendRequest&>(request).completion_level == CompletionLevel::delivery;
  if (needs_done && !request.done) return;
  complete(request, request.status);
}

void OutgoingRequests::finish(PulledRequest& request) {
  request.done = true;
  if (request.state == OutgoingRequest::State::announced && request.queue_hook.linked) {
    request.channel->tx.bulk.remove(request);
    request.pulls.clear();
  }
  settle(request);
}

ReadGrant* OutgoingRequests::acquire_grant(Channel& channel, const RmaIov& remote) {
  if (channel.rma.grants >= kGrantsMax || channel.rma.response_count >= kResponsesMax) return nullptr;
  auto* const grant = add_response<ReadGrant>(channel);
  if (grant == nullptr) return nullptr;
  grant->state = OutgoingRequest::State::posted;
  grant->remote = remote;
  grant->length = remote.length;
  ++channel.rma.grants;
  grants_.push_back(*grant);
  const std::optional<HeldRange> held = context_.bindings.regions->hold(remote, Access::read);
  if (held) {
    grant->held = *held;
    return grant;
  }
  complete(*grant, Status::access);
  return nullptr;
}

void OutgoingRequests::end_grants(std::uint64_t region) {
  for (ReadGrant* grant = grants_.front(); grant != nullptr;) {
    ReadGrant* const next = grants_.after(*grant);
    if (region == 0 || grant->held.number == region) complete(*grant, Status::access);
    grant = next;
  }
}

/// When this function returns, the peer's device does not read the range any more.
void OutgoingRequests::end_grant(ReadGrant& grant) {
  --grant.channel->rma.grants;
  grants_.remove(grant);
  if (grant.held.number == 0) return;
  if (grant.channel->reads != nullptr) grant.channel->reads->conceal(grant.id);
  context_.bindings.regions->release(grant.held);
}

void OutgoingRequests::complete(OutgoingRequest& request, Status status) {
  Channel& channel = *request.channel;
  if (request.state == OutgoingRequest::State::announced && channel.reads != nullptr)
    channel.reads->conceal(request.id);
  if (request.kind == Kind::read_grant) end_grant(static_cast<ReadGrant&>(request));
  if (request.queue_hook.linked) {
    const bool ordered = request.state == OutgoingRequest::State::queued && !request.response();
    (ordered ? channel.tx.ordered : channel.tx.bulk).remove(request);
  }
  if (request.response()) {
    channel.rma.responses.remove(request);
    --channel.rma.response_count;
    --responses_;
  } else {
    channel.outgoing.remove(request);
  }
  if (request.kind == Kind::message) {
    reporter_.sent(static_cast<const SendRequest&>(request), status);
  } else if (request.kind == Kind::write) {
    const bool unordered = request.state == OutgoingRequest::State::announced ||
                           request.state == OutgoingRequest::State::submitted;
    if (unordered) --channel.rma.writes_announced;
    reporter_.rma_completed(Completion::Kind::write, static_cast<const WriteRequest&>(request).range.group,
                            request.context, request.report, status, channel);
  } else if (request.kind == Kind::queued_read) {
    if (request.state == OutgoingRequest::State::submitted) --channel.rma.reads;
  } else if (request.kind == Kind::atomic) {
    const auto& atomic = static_cast<const AtomicRequest&>(request);
    channel.rma.atomic_parts -= request.unanswered;
    reporter_.rma_completed(atomic.code.fetch ? Completion::Kind::fetch : Completion::Kind::atomic,
                            atomic.range.group, request.context, request.report, status, channel);
  }
  pool_.release(request);
}

}  // namespace cluster::protocol
