// Messages of which nothing is promised: complete for the sender when they have left, and for the
// receiver if they come. A few may wait for their receive, as in any socket; the rest are dropped.
#include "protocol/messenger.h"

namespace cluster::protocol {
namespace {

/// So many receives late an application may be before messages are lost here.
constexpr std::size_t kStoredMax = 256;

}  // namespace

void Messenger::datagram_left(const SendOp& order) {
  ++counters_.datagrams_sent;
  counters_.bytes_sent += order.length;
  report_send(order);
}

void Messenger::arrive_datagram(Channel& channel, const wire::Segment& segment, ConstBytes payload) {
  if (segment.kind != wire::SegmentKind::eager || segment.tagged() || segment.confirm()) return refuse();
  if (RecvRequest* receive = match(channel, false, 0, payload.size())) {
    receive->channel = &channel;
    receive->data = segment.data;
    receive->has_data = segment.has_data();
    receive->total = payload.size();
    scatter(receive->buffers(), 0, payload);
    return complete(*receive, Status::ok);
  }
  UnexpectedMessage* message =
      messages_.alive() < kStoredMax ? store(channel, segment, payload.size()) : nullptr;
  if (message == nullptr) {
    ++counters_.datagrams_dropped;
    return;
  }
  keep_bytes(*message);
  if (!payload.empty()) std::memcpy(message->bytes.get(), payload.data(), payload.size());
  message->arrived = payload.size();
}

}  // namespace cluster::protocol
