#include "protocol/rendezvous_protocol.h"

#include <algorithm>

namespace cluster::protocol {
namespace {

/// Returns `found` as the announced message or write of which the peer wants the range in `segment`. Returns
/// null if nothing is announced under this id, or if the range is not inside it.
PulledRequest* announced_with(OutgoingRequest* found, const wire::Segment& segment) {
  // Only messages and writes are ever in this state, so the cast is safe.
  if (found == nullptr || found->state != OutgoingRequest::State::announced) return nullptr;
  auto& request = static_cast<PulledRequest&>(*found);
  const bool valid = !request.done && segment.total > 0 && segment.offset <= request.length &&
                     segment.total <= request.length - segment.offset;
  return valid ? &request : nullptr;
}

}  // namespace

bool RendezvousProtocol::announce(SendRequest& request) {
  wire::Segment segment{.kind = wire::SegmentKind::announce,
                        .flags = message_flags(request),
                        .id = request.id,
                        .total = request.length,
                        .tag = request.tag,
                        .data = request.data};
  DirectCopy::offer_source(request, segment);
  if (!post_copy(*request.channel->carrier, segment, {})) return false;
  ++context_.counters.rendezvous_sent;
  OutgoingRequests::leave_queue(request, OutgoingRequest::State::announced);
  return true;
}

void RendezvousProtocol::on_announce(Channel& channel, const wire::Segment& segment) {
  const MessageHeader header = header_of(segment, segment.total);
  if (RecvRequest* receive = matcher_.match(channel, segment, header.total)) {
    receive->matched(channel, header);
    return pulls_.start(*receive);
  }
  UnexpectedMessage* message = matcher_.store(channel, header, 0, {});
  if (message == nullptr) return context_.refuse_segment();
  message->announced = true;
  if (matcher_.unwanted(channel, segment)) matcher_.discard(*message);
}

void RendezvousProtocol::on_pull(Channel& channel, const wire::Segment& segment) {
  PulledRequest* const request = announced_with(outgoing_.find(channel, segment.id), segment);
  const PullRange range{segment.offset, segment.offset + segment.total, segment.address};
  if (request == nullptr || !request->pulls.add(range)) return context_.refuse_segment();
  request->receiver_id = segment.peer_id;
  if (!channel.tx.bulk.linked(*request)) channel.tx.bulk.push_back(*request);
  control_.mark_busy(channel);
}

void RendezvousProtocol::on_expose(Channel& channel, const wire::Segment& segment) {
  PulledRequest* const found = announced_with(outgoing_.find(channel, segment.id), segment);
  if (found == nullptr) return context_.refuse_segment();
  PulledRequest& request = *found;
  const ConstBytes bytes =
      carrier::device_piece(request.slices.all(), request.base + segment.offset, segment.total);
  carrier::ExposedMemory memory;
  if (channel.reads != nullptr) channel.reads->conceal(request.id);  // the piece before
  const bool exposed =
      channel.reads != nullptr && !bytes.empty() && channel.reads->expose(request.id, bytes, memory);
  if (exposed) request.posted = std::max<std::size_t>(request.posted, segment.offset + bytes.size());
  control_.send(channel, {.kind = wire::SegmentKind::exposed,
                          .flags = memory.checksum ? wire::segment_flag::kData : std::uint8_t{0},
                          .peer_id = segment.peer_id,
                          .offset = memory.address,
                          .total = exposed ? bytes.size() : 0,
                          .key = memory.key,
                          .data = memory.checksum.value_or(0)});
}

bool RendezvousProtocol::stream(PulledRequest& request) {
  Channel& channel = *request.channel;
  Carrier& carrier = *channel.carrier;
  PullRange& range = request.pulls.front();
  const auto count = [&](std::size_t bytes) {
    request.posted = std::min(request.posted + bytes, request.length);  // a range may be pulled twice
  };
  if (range.address != 0 && DirectCopy::place(control_, request, range)) {
    count(range.end - range.offset);
    range.offset = range.end;
  }
  range.address = 0;
  while (range.offset < range.end) {
    const wire::Segment segment{
        .kind = wire::SegmentKind::bulk, .peer_id = request.receiver_id, .offset = range.offset};
    const Token token = carrier.traits().acknowledges_on_post ? 0 : OutgoingRequests::token_of(request);
    const Gather payload = request.bytes(range.offset, range.end - range.offset);
    const std::size_t taken = carrier.post_run(segment, payload, token);
    if (taken == 0) return false;
    if (token != 0) ++request.unanswered;
    range.offset += taken;
    count(taken);
    channel.tx.bulk_bytes += taken;
  }
  request.pulls.pop_front();
  channel.tx.bulk.remove(request);
  if (request.pulls.count() > 0) channel.tx.bulk.push_back(request);
  return true;
}

}  // namespace cluster::protocol
