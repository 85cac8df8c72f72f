#include "protocol/control_sender.h"

namespace cluster::protocol {

void ControlSender::send(Channel& channel, const wire::Segment& segment) {
  if (channel.carrier == nullptr) return;  // the peer is lost, so nobody waits for the segment
  mark_pending(channel);
  RingQueue<wire::Segment>& kept = channel.tx.control;
  if (kept.empty() && post_copy(*channel.carrier, segment, {})) return;
  if (kept.size() >= kControlMax) return context_.refuse_segment();  // no correct peer causes so many
  if (attempt(channel, [&] { kept.push_back(segment); })) mark_busy(channel);
}

void ControlSender::send_done(Channel& channel, std::uint32_t id) {
  send(channel, {.kind = wire::SegmentKind::done, .id = id});
}

void ControlSender::send_failed(Channel& channel, std::uint32_t id) {
  send(channel,
       {.kind = wire::SegmentKind::failed, .id = id, .total = static_cast<std::uint64_t>(Status::access)});
}

void ControlSender::release(Channel& channel, std::uint64_t charge) {
  Credit& credit = channel.credit;
  credit.released += charge;
  const std::uint64_t limit = credit.released + context_.settings.eager_credit;
  if (limit < credit.granted + context_.settings.eager_credit / 4) return;
  credit.granted = limit;
  advertise_credit(channel);
}

bool ControlSender::flush(Channel& channel) {
  RingQueue<wire::Segment>& kept = channel.tx.control;
  while (!kept.empty()) {
    if (!post_copy(*channel.carrier, kept.front(), {})) return false;
    kept.pop_front();
  }
  return true;
}

}  // namespace cluster::protocol
