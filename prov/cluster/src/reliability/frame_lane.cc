#include "reliability/frame_lane.h"

#include <utility>

namespace cluster::reliability {

bool FrameLane::ordinary() const {
  const SendWindow& window = parts_.queue.window();
  const link::Path& first = parts_.paths[0].address;
  return parts_.status.alive() && parts_.handshake.knows_peer() && parts_.handshake.peer_has_opening() &&
         parts_.queue.takes_alone(0) && !window.has_gap() && parts_.paths.ip_paths() == 1 &&
         first.doubts == 0 && parts_.handshake.has_address(first.to) && parts_.receiver.ordinary() &&
         parts_.acks.ordinary() && parts_.sender.ordinary() && parts_.frame_size.search_complete() &&
         !parts_.frame_size.singly(window.first());
}

void FrameLane::review(Time now, wire::Integrity integrity) {
  close();
  if (!enabled_ || integrity != wire::Integrity::checksum || !ordinary()) return;
  frames_left_ = parts_.paths[0].recovery.allowance(now);
}

void FrameLane::settle() {
  parts_.acks.settle();
  const Time heard = std::exchange(heard_at_, Time{});
  if (heard == Time{}) return;
  parts_.liveness.on_sign_of_life(heard, !std::exchange(heard_by_ip_, false));
}

inline bool FrameLane::leave(Time now, link::Link& link, std::uint8_t flags) {
  --frames_left_;
  wire::LoneNumbers numbers;
  parts_.receiver.acknowledge(now, numbers);
  return parts_.sender.send_alone(now, link, numbers, flags);
}

bool FrameLane::send(Time now, link::Link& link) {
  if (!leave(now, link, FrameSender::kAwaited)) return false;
  parts_.answer_delay.on_data(now);
  parts_.receiver.on_acknowledged(now, false);
  return true;
}

bool FrameLane::answer(Time now, link::Link& link, bool ack_due) {
  if (!ack_due && parts_.answer_delay.wait()) return true;
  parts_.queue.close_open_frame();
  if (!leave(now, link, FrameSender::kOnlyAnswers)) return false;
  parts_.answer_delay.on_answers_alone(now);
  parts_.receiver.on_acknowledged(now, true);
  return true;
}

}  // namespace cluster::reliability
