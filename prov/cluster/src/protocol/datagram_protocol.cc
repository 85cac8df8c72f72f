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
  if (segment.kind != wire::SegmentKind::eager || segment.tagged() || segment.confirm()) {
    return context_.refuse_segment();
  }
  if (RecvRequest* receive = matcher_.match(channel, false, 0, payload.size())) {
    receive->channel = &channel;
    receive->data = segment.data;
    receive->has_data = segment.has_data();
    receive->total = payload.size();
    scatter(receive->buffers(), 0, payload);
    return pulls_.complete(*receive, Status::ok);
  }
  UnexpectedMessage* const message =
      matcher_.stored() < kStoredMax ? matcher_.store(channel, segment, payload.size()) : nullptr;
  if (message == nullptr) {
    ++context_.counters.datagrams_dropped;
    return;
  }
  matcher_.keep_bytes(*message, payload);
}

}  // namespace cluster::protocol
