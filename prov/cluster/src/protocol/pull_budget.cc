#include "protocol/pull_budget.h"

namespace cluster::protocol {

PullBudget::PullBudget(std::size_t most, Size size)
    : most_(std::max(most, kPieceMin)),
      least_(size == Size::found ? std::min(most_, kLeast) : most_),
      limit_(size == Size::found ? std::min(most_, kFirst) : most_) {}

void PullBudget::pulled(RecvRequest& receive, std::size_t bytes) {
  Channel& channel = *receive.channel;
  if (!timed_.armed) timed_ = {receive.id, receive.requested, kNever, true};
  receive.requested += bytes;
  if (channel.pulled == 0) asked_.push_back(channel);
  channel.pulled += bytes;
  channel.pull_asked = true;
  out_ += bytes;
}

void PullBudget::arrived(RecvRequest& receive, std::size_t offset, std::size_t bytes,
                         const ArrivalInfo& info) {
  Channel& channel = *receive.channel;
  if (timed_.armed && timed_.receive == receive.id && offset >= timed_.offset) {
    timed_.armed = false;
    if (timed_.sent_at != kNever && info.host_delay) {
      sample(info.now, info.now - timed_.sent_at - *info.host_delay);
    }
  }
  channel.brought += bytes;
  if (channel.pull_stalled && moves(channel)) {
    channel.pull_stalled = false;
    out_ += channel.pulled;
  }
  receive.arrived += bytes;
  take_back(channel, bytes);
}

void PullBudget::given_up(Channel& channel, std::size_t bytes) {
  timed_.armed = false;
  take_back(channel, bytes);
}

void PullBudget::take_back(Channel& channel, std::size_t bytes) {
  if (bytes == 0) return;
  channel.pulled -= bytes;
  if (!channel.pull_stalled) out_ -= bytes;
  if (channel.pulled != 0) return;
  channel.pull_stalled = false;
  channel.brought = 0;
  asked_.remove(channel);
}

void PullBudget::sample(Time now, Duration taken) {
  if (taken <= Duration::zero()) return;  // somebody has set the time
  last_taken_ = taken;
  distance_.sample(now, taken);
  const Duration limit = distance_.get() + kTarget;
  if (taken > limit) {
    exploring_ = false;
    quick_ = 0;
    const auto part = static_cast<std::size_t>(std::max<std::int64_t>(limit * 100 / taken, 50));
    limit_ = std::max(least_, limit_ * part / 100);
  } else if (lacked_) {
    quick_ = taken < distance_.get() + kTarget / 4 ? quick_ + 1 : 0;
    exploring_ = exploring_ || quick_ >= kQuickEnough;
    limit_ = std::min(most_, exploring_ ? limit_ * 2 : limit_ + limit_ / 8);
  }
  lacked_ = false;
}

bool PullBudget::check_stalls(Time now) {
  if (now < check_at_) return false;
  check_at_ = now + std::max(kPatience, 4 * last_taken_);
  bool lent = false;
  for (Channel* channel = asked_.front(); channel != nullptr; channel = asked_.after(*channel)) {
    if (!channel->pull_asked && !channel->pull_stalled && !moves(*channel)) {
      channel->pull_stalled = lent = true;
      out_ -= channel->pulled;
    }
    channel->pull_asked = false;
    channel->brought = 0;
  }
  return lent;
}

}  // namespace cluster::protocol
