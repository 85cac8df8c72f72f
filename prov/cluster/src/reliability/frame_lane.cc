#include "reliability/frame_lane.h"

#include <algorithm>
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

bool FrameLane::send(Time now, link::Link& link) {
  --frames_left_;
  wire::LoneNumbers numbers;
  parts_.receiver.acknowledge(now, numbers);
  if (!parts_.sender.send_alone(now, link, numbers)) return false;
  parts_.answer_delay.on_data(now);
  parts_.receiver.on_acknowledged(now);
  return true;
}

bool FrameLane::from_peer(const link::Path& from) const {
  const link::Path& first = parts_.paths[0].address;
  const bool same_mac = !from.mac_known || (first.mac_known && from.same_mac(first));
  return same_mac && from.link == first.link && first.doubts == 0 && from.to == first.to;
}

bool FrameLane::predicts(const wire::LoneFrame& frame, const link::Path& from) const {
  return open() && parts_.status.alive() && frame.session == parts_.handshake.session() &&
         parts_.receiver.expects(frame.sequence, frame.transmission) && parts_.acks.expects(frame) &&
         from_peer(from);
}

bool FrameLane::take(Time now, const wire::LoneFrame& frame, const link::Path& from, Time arrived) {
  arrived = std::min(arrived, now);
  parts_.acks.take(now, frame, arrived);
  parts_.paths.learn_again(from);
  heard_at_ = now;
  heard_by_ip_ |= !from.ethertype;
  return parts_.receiver.take_expected(now, arrived, frame.transmission, frame.ack_now);
}

}  // namespace cluster::reliability
