#include "protocol/group_protocol.h"

#include <cstring>
#include <utility>

namespace cluster::protocol {

std::uint64_t GroupProtocol::begin(const SendOp& op) {
  GroupSend* const send = sends_.acquire();
  if (send == nullptr) return 0;
  send->op = op;
  send->op.slices = {};
  ++parts_.context.counters.eager_sent;
  parts_.context.counters.bytes_sent += op.length;
  return std::uint64_t{1} << 32 | send->id;
}

void GroupProtocol::withdraw(std::uint64_t token) {
  if (GroupSend* const send = sends_.find(static_cast<std::uint32_t>(token))) sends_.release(*send);
}

void GroupProtocol::finish(std::uint64_t token, Status status, const SocketAddress& culprit) {
  GroupSend* const send = sends_.find(static_cast<std::uint32_t>(token));
  if (send == nullptr) return;
  parts_.reporter.sent(send->op, status, culprit);
  sends_.release(*send);
}

wire::Segment GroupProtocol::shape_of(const SendOp& op) {
  wire::Segment shape;
  if (op.tagged) shape.flags |= wire::segment_flag::kTagged;
  if (op.has_data) shape.flags |= wire::segment_flag::kData;
  if (op.collective) shape.flags |= wire::segment_flag::kCollective;
  shape.tag = op.tag;
  shape.data = op.data;
  return shape;
}

namespace {

bool belongs(const wire::Segment& first, GroupProtocol::Content content) {
  return first.collective() == (content == GroupProtocol::Content::collectives);
}

}  // namespace

bool GroupProtocol::ready(Channel& channel, const wire::Segment& segment, Content content) {
  if (segment.kind == wire::SegmentKind::eager_next || !belongs(segment, content))
    return true;  // the latter is refused
  if (!parts_.matcher.ready(channel, segment)) return false;
  const bool short_enough = segment.kind == wire::SegmentKind::eager || segment.total <= kGroupUnexpectedMax;
  return short_enough || parts_.matcher.queues().of(segment).would_match(&channel, segment.tag);
}

void GroupProtocol::begin_message(Channel& channel, Assembly& assembly, const wire::Segment& segment,
                                  std::size_t total) {
  if (RecvRequest* const receive = parts_.matcher.match(channel, segment, total)) {
    receive->matched(channel, header_of(segment, total));
    assembly.receive = receive;
  } else if (UnexpectedMessage* const message =
                 parts_.matcher.store(channel, header_of(segment, total), total, {})) {
    message->charge = 0;
    message->discarded = parts_.matcher.unwanted(channel, segment);
    assembly.unexpected = message;
  }
}

/// True if that completes the message.
bool GroupProtocol::append(Assembly& assembly, ConstBytes payload) const {
  if (RecvRequest* const receive = assembly.receive) {
    if (payload.size() > receive->total - receive->pull.arrived) {
      parts_.context.refuse_segment();
      return false;
    }
    scatter(receive->buffers(), receive->pull.arrived, payload);
    receive->pull.arrived += payload.size();
    return receive->pull.arrived == receive->total;
  }
  UnexpectedMessage& message = *assembly.unexpected;
  if (payload.size() > message.total - message.arrived) {
    parts_.context.refuse_segment();
    return false;
  }
  if (!payload.empty()) std::memcpy(message.bytes.get() + message.arrived, payload.data(), payload.size());
  message.arrived += payload.size();
  return message.arrived == message.total;
}

void GroupProtocol::arrive(Channel& channel, Assembly& assembly, const wire::Segment& segment,
                           ConstBytes payload, Content content) {
  using wire::SegmentKind;
  const bool begins = segment.kind == SegmentKind::eager || segment.kind == SegmentKind::eager_first;
  const bool continues = segment.kind == SegmentKind::eager_next;
  // No correct sender begins a message inside another one, or sends anything else in a stream.
  if ((!begins && !continues) || begins == assembly.active() || segment.confirm() ||
      (begins && !belongs(segment, content)))
    return parts_.context.refuse_segment();
  const std::size_t total = segment.kind == SegmentKind::eager ? payload.size() : segment.total;
  if (begins) begin_message(channel, assembly, segment, total);
  if (!assembly.active()) return parts_.context.refuse_segment();
  if (!append(assembly, payload)) return;
  const Assembly whole = std::exchange(assembly, {});
  if (whole.receive != nullptr) {
    parts_.pulls.complete(*whole.receive, Status::ok);
  } else {
    parts_.matcher.completed(*whole.unexpected);
  }
}

void GroupProtocol::abort(Assembly& assembly, Status status) {
  const Assembly part = std::exchange(assembly, {});
  if (part.receive != nullptr) parts_.pulls.complete(*part.receive, status);
  if (part.unexpected == nullptr) return;
  UnexpectedMessage& message = *part.unexpected;
  if (message.receive != nullptr) parts_.pulls.complete(*std::exchange(message.receive, nullptr), status);
  // What is left is of no use: it goes as a message goes that was discarded before its last part had come.
  message.discarded = true;
  message.arrived = message.total;
  parts_.matcher.completed(message);
}

}  // namespace cluster::protocol
