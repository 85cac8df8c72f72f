#include "protocol/pending_operations.h"

namespace cluster::protocol {
namespace {

const char* name_of(const OutgoingRequest& request) {
  switch (request.kind) {
    case OutgoingRequest::Kind::message: return "send";
    case OutgoingRequest::Kind::write: return "write";
    case OutgoingRequest::Kind::atomic: return "atomic";
    case OutgoingRequest::Kind::queued_read: return "read";
    case OutgoingRequest::Kind::read_response:
    case OutgoingRequest::Kind::atomic_response:
    case OutgoingRequest::Kind::read_grant: break;
  }
  return "response";
}

const char* announced_waits_for(const PulledRequest& request) {
  if (request.posted >= request.length && request.length != 0) return "to confirm it";
  if (request.posted != 0 || request.pulls.count() != 0) return "to fetch the rest of it";
  return request.kind == OutgoingRequest::Kind::message ? "to post a receive that matches it" : "to fetch it";
}

const char* posted_waits_for(const OutgoingRequest& request) {
  if (request.kind == OutgoingRequest::Kind::atomic) return "to answer it";
  if (request.kind == OutgoingRequest::Kind::write) return "to confirm it";
  return request.unanswered == 0 ? "to confirm it" : "to acknowledge it";
}

const char* waits_for(const OutgoingRequest& request) {
  switch (request.state) {
    case OutgoingRequest::State::announced:
      return announced_waits_for(static_cast<const PulledRequest&>(request));
    case OutgoingRequest::State::submitted: return "to give access to its memory";
    case OutgoingRequest::State::posted: return posted_waits_for(request);
    case OutgoingRequest::State::queued: break;
  }
  return request.channel->tx.ordered.front() == &request ? "to take earlier messages"
                                                         : "to finish earlier operations";
}

PendingOperation describe(const OutgoingRequest& request) {
  PendingOperation operation{.kind = name_of(request),
                             .peer = request.channel->name,
                             .length = request.length,
                             .done = request.posted,
                             .noted = request.noted,
                             .waits_for = waits_for(request)};
  if (request.kind != OutgoingRequest::Kind::message) return operation;
  const auto& message = static_cast<const SendRequest&>(request);
  operation.tagged = message.tagged;
  operation.tag = message.tag;
  return operation;
}

PendingOperation describe_arriving(const IncomingRequest& request) {
  using Kind = IncomingRequest::Kind;
  const char* const kind = request.kind == Kind::read           ? "read"
                           : request.kind == Kind::write_target ? "peer's write"
                                                                : "receive";
  PendingOperation operation{
      .kind = kind,
      .peer = request.channel->name,
      .length = request.total,
      .done = request.pull.arrived + request.pull.copied,
      .noted = request.noted,
      .waits_for = request.kind == Kind::read ? "to send the data" : "to send the rest of it"};
  if (request.kind != Kind::receive) return operation;
  const auto& receive = static_cast<const RecvRequest&>(request);
  operation.tagged = receive.tagged;
  operation.tag = receive.tag;
  return operation;
}

}  // namespace

void note(const Matcher& matcher, Time now) {
  for (const MatchQueue& queue : matcher.queues()) {
    const auto& posted = queue.posted();
    for (RecvRequest* each = posted.back(); each != nullptr && each->noted == Time{};
         each = posted.before(*each))
      each->noted = now;
  }
}

void collect(const Matcher& matcher, std::vector<PendingOperation>& into) {
  for (const MatchQueue& queue : matcher.queues()) {
    const auto& posted = queue.posted();
    for (const RecvRequest* each = posted.front(); each != nullptr; each = posted.after(*each)) {
      // The receive by which a connection watches its peer waits for no message.
      if (each->internal && !each->report) continue;
      const bool many = each->kind == IncomingRequest::Kind::multi_recv_buffer;
      into.push_back({.kind = many             ? "buffer"
                              : each->internal ? "receive of a collective"
                                               : "receive",
                      .peer = each->from != nullptr ? each->from->name : SocketAddress{},
                      .length = each->capacity,
                      .tagged = each->tagged,
                      .tag = each->tag,
                      .noted = each->noted,
                      .waits_for = "to send a message that matches it"});
    }
  }
}

void collect(const Matcher& matcher, std::vector<StoredMessage>& into, std::size_t most) {
  for (const MatchQueue& queue : matcher.queues()) {
    const auto& stored = queue.stored();
    for (const UnexpectedMessage* each = stored.front(); each != nullptr && into.size() < most;
         each = stored.after(*each)) {
      if (each->available()) into.push_back({each->channel->name, each->total, each->tagged, each->tag});
    }
  }
}

void note(Channel& channel, Time now) {
  for (OutgoingRequest* each = channel.outgoing.back(); each != nullptr && each->noted == Time{};
       each = channel.outgoing.before(*each)) {
    each->noted = now;
  }
  // Receives enter this list when their messages arrive, and some of them were noted before. So an operation
  // that was not noted may be anywhere in the list.
  for (IncomingRequest* each = channel.incoming.front(); each != nullptr;
       each = channel.incoming.after(*each)) {
    if (each->noted == Time{}) each->noted = now;
  }
}

void collect(const Channel& channel, std::vector<PendingOperation>& into) {
  for (const OutgoingRequest* each = channel.outgoing.front(); each != nullptr;
       each = channel.outgoing.after(*each)) {
    into.push_back(describe(*each));
  }
  for (const IncomingRequest* each = channel.incoming.front(); each != nullptr;
       each = channel.incoming.after(*each)) {
    into.push_back(describe_arriving(*each));
  }
  if (channel.assembly.receive != nullptr) into.push_back(describe_arriving(*channel.assembly.receive));
  for (std::size_t i = 0; i < channel.rma.puts_pending; ++i) {
    into.push_back({.kind = "write", .peer = channel.name, .waits_for = "to take it"});
  }
  for (std::size_t i = 0; i < channel.rma.gets_pending; ++i) {
    into.push_back({.kind = "read", .peer = channel.name, .waits_for = "to give access to its memory"});
  }
}

}  // namespace cluster::protocol
