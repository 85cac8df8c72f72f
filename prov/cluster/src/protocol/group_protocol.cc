#include "protocol/group_protocol.h"

#include <utility>

namespace cluster::protocol {

std::uint64_t GroupProtocol::begin(const SendOp& op) {
  GroupSend* const send = sends_.acquire();
  if (send == nullptr) return 0;
  send->op = op;
  send->op.slices = {};
  ++context_.counters.eager_sent;
  context_.counters.bytes_sent += op.length;
  return std::uint64_t{1} << 32 | send->id;
}

void GroupProtocol::withdraw(std::uint64_t token) {
  if (GroupSend* const send = sends_.find(static_cast<std::uint32_t>(token))) sends_.release(*send);
}

void GroupProtocol::finish(std::uint64_t token, Status status, const SocketAddress& culprit) {
  GroupSend* const send = sends_.find(static_cast<std::uint32_t>(token));
  if (send == nullptr) return;
  reporter_.sent(send->op, status, culprit);
  sends_.release(*send);
}

wire::Segment GroupProtocol::shape_of(const SendOp& op) {
  return {.flags = message_flags(op), .tag = op.tag, .data = op.data};
}

namespace {

bool belongs(const wire::Segment& first, GroupProtocol::Content content) {
  return first.internal() == (content == GroupProtocol::Content::collectives);
}

}  // namespace

bool GroupProtocol::ready(Channel& channel, const wire::Segment& segment, Content content) {
  if (segment.kind == wire::SegmentKind::eager_next || !belongs(segment, content))
    return true;  // arrive() refuses a segment that does not belong into this stream
  if (!matcher_.ready(channel, segment)) return false;
  const bool short_enough = segment.kind == wire::SegmentKind::eager || segment.total <= kGroupUnexpectedMax;
  return short_enough || matcher_.queues().of(segment).would_match(&channel, segment.tag);
}

void GroupProtocol::arrive(Channel& channel, Assembly& assembly, const wire::Segment& segment,
                           ConstBytes payload, Content content) {
  using wire::SegmentKind;
  const bool begins = segment.kind == SegmentKind::eager || segment.kind == SegmentKind::eager_first;
  const bool continues = segment.kind == SegmentKind::eager_next;
  // No correct sender begins a message inside another one, or sends any other kind of segment in a stream.
  if ((!begins && !continues) || begins == assembly.active() || segment.confirm() ||
      (begins && !belongs(segment, content)))
    return context_.refuse_segment();
  const std::size_t total = segment.kind == SegmentKind::eager ? payload.size() : segment.total;
  if (begins) assembly = matcher_.begin(channel, segment, total, 0);
  if (!assembly.active() || !assembly.append(payload)) return context_.refuse_segment();
  if (!assembly.complete()) return;
  const Assembly whole = std::exchange(assembly, {});
  if (whole.receive != nullptr) {
    pulls_.complete(*whole.receive, Status::ok);
  } else {
    matcher_.completed(*whole.unexpected);
  }
}

void GroupProtocol::abort(Assembly& assembly, Status status) {
  const Assembly part = std::exchange(assembly, {});
  if (part.receive != nullptr) pulls_.complete(*part.receive, status);
  if (part.unexpected == nullptr) return;
  UnexpectedMessage& message = *part.unexpected;
  if (message.receive != nullptr) pulls_.complete(*std::exchange(message.receive, nullptr), status);
  // The rest of the message will not arrive. completed() drops a message that is marked as discarded and
  // complete.
  message.discarded = true;
  message.arrived = message.total;
  matcher_.completed(message);
}

}  // namespace cluster::protocol
