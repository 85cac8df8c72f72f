#include "relay/membership.h"

#include <algorithm>

namespace cluster::relay {

/// The relay may have only one of the keys, so the requests use them in turn.
void Membership::ask(Time now, const SocketAddress& name, std::uint8_t links, link::Link& link,
                     Random& random) {
  if (now < next_ask_) return;
  ask_interval_ = std::clamp(ask_interval_ * 2, kAskIntervalMin, kAskIntervalMax);
  next_ask_ = now + ask_interval_;
  wire::RelayMessage request;
  request.kind = wire::FrameKind::relay_request;
  request.name = name;
  request.number = number_ = std::max<std::uint64_t>(random.next(), 1);
  offered_ = false;
  const wire::RelayFrame frame = (*keys_)[asks_++ % keys_->size()]->seal(request);
  for (std::uint8_t i = 0; i < links; ++i) link::send_frame(link, frame, {relay_, {}, false, i});
}

bool Membership::on_frame(Time now, ConstBytes frame, const link::Path& from, link::Link& link) {
  const std::optional<wire::RelayMessage> message = wire::decode_relay(frame);
  if (!message || number_ == 0 || message->number != number_) return false;
  const auto key = std::ranges::find(*keys_, message->key_id, [](const auto& each) { return each->id(); });
  if (key == keys_->end() || !(*key)->verify(frame)) return false;
  if (message->kind == wire::FrameKind::relay_offer && !offered_) {
    offered_ = true;
    wire::RelayMessage join = *message;
    join.kind = wire::FrameKind::relay_join;
    link::send_frame(link, (*key)->seal(join), link::without_mac(from));
  }
  if (message->kind != wire::FrameKind::relay_joined) return false;
  const bool before = joined();
  member_ = message->member;
  path_ = link::without_mac(from);
  joined_at_ = now;
  number_ = 0;
  asks_ = 0;
  ask_interval_ = {};
  return !before;
}

}  // namespace cluster::relay
