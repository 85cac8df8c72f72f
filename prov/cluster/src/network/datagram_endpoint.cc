#include "network/datagram_endpoint.h"

#include "wire/control.h"

namespace cluster::network {

Status DatagramEndpoint::send(const protocol::SendOp& op) {
  const Peer* peer = peers_.by_handle(op.to);
  if (peer == nullptr) return Status::bad_address;
  if (op.length + wire::kDatagramHeaderMax > link_.frame_max()) return Status::too_big;
  wire::Segment segment;
  segment.flags = op.has_data ? wire::segment_flag::kData : 0;
  segment.length = static_cast<std::uint32_t>(op.length);
  segment.data = op.data;
  const wire::DatagramHeader head(segment, op.slices, link_.integrity());
  const link::Path path{.to = peer->name()};
  link::OutFrame frame;
  frame.path = &path;
  frame.add(head.bytes());
  for (const ConstBytes slice : op.slices) frame.add(slice);
  if (link_.send_burst({&frame, 1}) == 0) return Status::again;
  ++counters_.frames_sent;
  messenger_.datagram_sent(op);
  return Status::ok;
}

void DatagramEndpoint::receive(Time now, const wire::FrameView& view, const link::Path& from) {
  const bool answered = view.kind == wire::FrameKind::alive || view.kind == wire::FrameKind::path_response;
  if (answered || view.kind == wire::FrameKind::keep_alive) return;
  if (view.kind != wire::FrameKind::datagram) {
    ++counters_.refused_stale;
    if (view.sequenced()) answers_.send_reset(now, view, from, wire::ResetReason::unknown_session, 0);
    return;
  }
  wire::Segment segment;
  const std::size_t header = wire::decode(view.segments, segment);
  if (header == 0 || segment.length != view.segments.size() - header) {
    ++counters_.refused_segment;
    return;
  }
  Peer* peer = peers_.find(from.to);
  if (peer == nullptr) peer = &peers_.find_or_add(peers_.known(from.to) ? from.to : SocketAddress{});
  messenger_.arrive_datagram(peer->channel, segment, view.segments.subspan(header));
}

}  // namespace cluster::network
