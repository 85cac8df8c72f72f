#include "protocol/datagram_protocol.h"

namespace cluster::protocol {
namespace {

/// Most messages that wait for their receive.
constexpr std::size_t kStoredMax = 256;

}  // namespace

void DatagramProtocol::sent(const SendOp& op) {
  ++context_.counters.datagrams_sent;
  context_.counters.bytes_sent += op.length;
  reporter_.sent(op);
}

void DatagramProtocol::arrived(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  if (segment.kind != wire::SegmentKind::eager || segment.tagged() || segment.confirm() ||
      segment.collective()) {
    return context_.refuse_segment();
  }
  const MessageHeader header = header_of(segment, payload.size());
  if (RecvRequest* receive = matcher_.match(channel, segment, header.total)) {
    receive->matched(channel, header);
    scatter(receive->buffers(), 0, payload);
    return pulls_.complete(*receive, Status::ok);
  }
  UnexpectedMessage* const message =
      matcher_.stored() < kStoredMax ? matcher_.store(channel, header, payload.size(), payload) : nullptr;
  if (message == nullptr) ++context_.counters.datagrams_dropped;
}

}  // namespace cluster::protocol
