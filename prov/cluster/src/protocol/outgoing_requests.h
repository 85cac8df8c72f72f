// The requests of this side: its operations in progress, and its responses to peers' operations. The class
// owns their memory, limits their number, keeps their order, and decides when each of them is complete.
//
// An operation waits in its channel's ordered queue until the carrier has taken it. Only the request at the
// head of the queue is posted, so operations leave in the order in which the application posted them.
// Nevertheless a later operation could take effect before an earlier one. If the later operation must not
// overtake the earlier one, it waits (must_wait).
#pragma once

#include <algorithm>

#include "protocol/completion_reporter.h"

namespace cluster::protocol {

class OutgoingRequests {
 public:
  using Kind = OutgoingRequest::Kind;

  OutgoingRequests(const Context& context, CompletionReporter& reporter)
      : context_(context), reporter_(reporter) {}

  /// Returns how many more operations the application may begin. Responses do not count.
  std::size_t left() const {
    const std::size_t max = context_.settings.tx_requests_max;
    return max - std::min(pool_.alive() - responses_, max);
  }
  std::size_t alive() const { return pool_.alive(); }

  /// Returns a request for an operation of the application. The caller must have checked left() first.
  template <typename Type, typename Op>
  Type& acquire(Channel& channel, const Op& op) {
    Type& request = *pool_.acquire<Type>();
    request.channel = &channel;
    request.context = op.context;
    request.report = op.report;
    request.fence = op.fence;
    channel.outgoing.push_back(request);
    return request;
  }
  /// Like acquire(), for a message.
  SendRequest& acquire_message(Channel& channel, const SendOp& op) {
    auto& request = acquire<SendRequest>(channel, op);
    request.length = op.length;
    request.tag = op.tag;
    request.data = op.data;
    request.completion_level = op.completion_level;
    request.tagged = op.tagged;
    request.internal = op.internal;
    request.deferred = op.deferred;
    request.has_data = op.has_data;
    return request;
  }
  /// Like acquire_message(), for a message that the carrier takes at once as one segment. The request may be
  /// one that the pool has kept from an earlier message.
  SendRequest& acquire_posted(Channel& channel, const ShortSend& message) {
    OutgoingRequest* const kept = pool_.take_kept();
    auto& request = kept != nullptr ? static_cast<SendRequest&>(*kept) : *pool_.acquire<SendRequest>();
    request.alone = true;
    request.channel = &channel;
    request.context = message.context;
    request.report = message.report;
    request.length = request.posted = message.header.length;
    request.tag = message.header.tag;
    request.tagged = message.header.tagged;
    request.data = message.header.data;
    request.has_data = message.header.has_data;
    request.state = OutgoingRequest::State::posted;
    request.unanswered = 1;
    request.noted = {};
    channel.outgoing.push_back(request);
    return request;
  }
  /// Like acquire(), for a write of one range that the carrier takes at once. The pool does not keep this
  /// request, because the peer knows its id.
  WriteRequest& acquire_posted(Channel& channel, const WriteOp& op) {
    auto& request = acquire<WriteRequest>(channel, op);
    request.range.remote = op.remote.front();
    request.length = request.posted = op.length;
    request.state = OutgoingRequest::State::posted;
    return request;
  }
  /// Calls begin(range) for each remote range of an operation.
  template <typename Begin>
  void each_range(const RmaOp& op, Begin&& begin) {
    pool_.reserve(op.remote.size());  // if memory is short, throws before any range has begun
    RmaRange range{.group = reporter_.group_for(op)};
    for (const RmaIov& remote : op.remote) {
      range.remote = remote;
      range.first = &remote == &op.remote.front();
      range.last = &remote == &op.remote.back();
      begin(range);
      range.base += remote.length;
    }
  }
  /// Adds a request for a response to the end of the bulk queue, and returns the request. Returns null if
  /// there are too many responses.
  template <typename Type>
  Type* acquire_response(Channel& channel) {
    Type* const request = add_response<Type>(channel);
    if (request != nullptr) channel.tx.bulk.push_back(*request);
    return request;
  }
  /// Returns a permission for the peer's device to read the range. Returns null if this side does not permit
  /// it.
  ReadGrant* acquire_grant(Channel& channel, const RmaIov& remote);
  /// Ends the permissions to read this region, which has been closed. 0: of all regions.
  void end_grants(std::uint64_t region);
  /// Undoes acquire() for a request that the carrier has not taken.
  void withdraw(OutgoingRequest& request) {
    request.channel->outgoing.remove(request);
    pool_.release(request);
  }
  /// Returns the request that a segment from the channel's peer names. Returns null if the channel has no
  /// request with this id.
  OutgoingRequest* find(const Channel& channel, std::uint32_t id) {
    OutgoingRequest* const request = pool_.find(id);
    return request != nullptr && request->channel == &channel ? request : nullptr;
  }

  /// Returns true if an operation of this kind has to wait for an operation in progress that it must not
  /// overtake. Only two kinds of operations can make others wait: reads, and the writes that
  /// RmaState::writes_announced counts. They may take effect at any later time. All other operations take
  /// effect in the order in which the carrier delivers them.
  bool blocked(const Channel& channel, Kind kind) const {
    if (channel.rma.writes_announced == 0 && channel.rma.reads == 0) [[likely]]
      return false;
    return blocked_by_rma(channel, kind);
  }
  /// Returns true if a request must wait although it is at the head of the ordered queue.
  bool must_wait(const OutgoingRequest& request) const;
  /// Adds an operation to the ordered queue of its channel. Returns true if the operation may begin at once.
  bool enqueue(OutgoingRequest& request) const {
    auto& queue = request.channel->tx.ordered;
    queue.push_back(request);
    return queue.front() == &request && !must_wait(request);
  }

  /// Takes the request out of the ordered queue. Either the carrier has taken the whole request or its
  /// announcement, or a transport has begun to perform it, or a part of it has failed.
  static void leave_queue(OutgoingRequest& request, OutgoingRequest::State state) {
    request.channel->tx.ordered.remove(request);
    request.state = state;
  }
  /// Copies the bytes of an injected operation that has to wait, because the application may change its
  /// buffer. If there is no memory for the copy, ends the operation with Status::no_memory and returns false.
  bool keep_copy(PulledRequest& request, const Gather& payload);

  // A token contains the id of its request. A high bit makes each token different from 0, because 0 means
  // that there is no token.
  static Token token_of(const OutgoingRequest& request) { return Token{1} << 32 | request.id; }
  /// Processes a token that the carrier has reported. A message that succeeds is reported to `direct`.
  void acked(Token token, DirectSuccesses& direct);
  /// Returns the write with this id if the next answer completes the whole operation of the write. Otherwise
  /// returns null.
  WriteRequest* find_posted_write(const Channel& channel, std::uint32_t id) {
    OutgoingRequest* const request = find(channel, id);
    if (request == nullptr || request->kind != Kind::write || request->unanswered != 0 ||
        request->state != OutgoingRequest::State::posted) {
      return nullptr;
    }
    auto& write = static_cast<WriteRequest&>(*request);
    return write.range.group == nullptr ? &write : nullptr;
  }
  /// Completes a write that find_posted_write() has returned, and reports it to `direct`.
  void succeeded(WriteRequest& request, DirectSuccesses& direct) {
    request.channel->outgoing.remove(request);
    reporter_.write_succeeded(request, direct);
    pool_.release(request);
  }
  /// Completes a message or write if it waits for nothing more.
  void settle(PulledRequest& request);
  /// Called when the receiver has finished with a message or write, successfully or not.
  void finish(PulledRequest& request);
  void complete(OutgoingRequest& request, Status status);

 private:
  template <typename Type>
  Type* add_response(Channel& channel) {
    if (responses_ >= context_.settings.responses_max) return nullptr;
    Type* const request = pool_.acquire<Type>();
    if (request == nullptr) return nullptr;
    request->channel = &channel;
    ++responses_;
    ++channel.rma.response_count;
    channel.rma.responses.push_back(*request);
    return request;
  }
  void end_grant(ReadGrant& grant);
  static bool whole(const SendRequest& request);
  bool blocked_by_rma(const Channel& channel, Kind kind) const;

  const Context& context_;
  CompletionReporter& reporter_;
  RequestPool<OutgoingRequest, SendRequest, WriteRequest, AtomicRequest, QueuedRead, ReadResponse,
              AtomicResponse, ReadGrant>
      pool_;
  List<ReadGrant, &ReadGrant::grant> grants_;
  std::size_t responses_ = 0;
};

}  // namespace cluster::protocol
