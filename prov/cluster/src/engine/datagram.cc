// An endpoint of datagrams: each message is one frame, sent once, and the frame that comes is the
// message. No flows, no rings; peers on this node are reached through the kernel like all others.
// What a frame is worth that names no session, only its sender can say: a datagram is believed to
// come from the address it carries, as in UDP. But no way is learnt from it: where datagrams to that address
// go is the kernel's to know, or whoever writes them could have them sent elsewhere.
#include "engine/core.h"
#include "wire/datagram_header.h"

namespace cluster::engine {

Status Core::send_datagram(Peer& peer, const protocol::SendOp& order) {
  if (order.length + wire::kDatagramHeaderMax > parts_.link->frame_max()) return Status::too_big;
  wire::Segment segment;
  segment.flags = order.has_data ? wire::segment_flag::kData : 0;
  segment.length = static_cast<std::uint32_t>(order.length);
  segment.data = order.data;
  const wire::DatagramHeader head(segment, order.slices);
  peer.way.to = peer.name();
  link::OutFrame frame;
  frame.path = &peer.way;
  frame.add(head.bytes());
  for (const ConstBytes slice : order.slices) frame.add(slice);
  if (parts_.link->send_burst({&frame, 1}) == 0) return Status::again;
  ++parts_.environment.counters.frames_sent;
  messenger_.datagram_left(order);
  return Status::ok;
}

/// The two kinds of endpoints do not talk to each other. A flow that opens at this door is told so
/// at once, or its sender would try for seconds.
void Core::dispatch_datagram(Time now, const wire::FrameView& view, const link::Path& from) {
  if (view.kind == wire::FrameKind::datagram && parts_.service == EndpointType::dgram) {
    return on_datagram(view, from);
  }
  ++parts_.environment.counters.refused_stale;
  if (view.sequenced()) refuse_frame(now, view, from, wire::ResetReason::unknown_session, 0);
}

void Core::on_datagram(const wire::FrameView& view, const link::Path& from) {
  wire::Segment segment;
  const std::size_t header = wire::decode(view.segments, segment);
  if (header == 0 || segment.length != view.segments.size() - header) {
    ++parts_.environment.counters.refused_segment;
    return;
  }
  // Strangers are not remembered, or anybody could fill the memory: all of them are the peer
  // without a name.
  Peer* peer = peers_.find(from.to);
  if (peer == nullptr) peer = &peers_.named(peers_.expected(from.to) ? from.to : SocketAddress{});
  messenger_.arrive_datagram(peer->channel, segment, view.segments.subspan(header));
}

}  // namespace cluster::engine
