#include "protocol/pull_budget.h"

namespace cluster::protocol {

PullBudget::PullBudget(std::size_t most, Size size)
    : most_(std::max(most, kPieceMin)),
      least_(size == Size::found ? std::min(most_, kBudgetMin) : most_),
      limit_(size == Size::found ? std::min(most_, kBudgetInitial) : most_) {}

void PullBudget::pulled(IncomingRequest& request, std::size_t bytes) {
  PullShare& share = request.channel->pull;
  if (!timed_.armed) timed_ = {request.id, request.pull.requested, kNever, true};
  request.pull.requested += bytes;
  if (share.in_flight == 0) requested_.push_back(share);
  share.in_flight += bytes;
  share.requested = true;
  in_flight_ += bytes;
}

void PullBudget::arrived(IncomingRequest& request, std::size_t offset, std::size_t bytes,
                         const ArrivalInfo& info) {
  PullShare& share = request.channel->pull;
  if (timed_.armed && timed_.request == request.id && offset >= timed_.offset) {
    timed_.armed = false;
    if (timed_.sent_at != kNever && info.host_delay) {
      last_host_delay_ = *info.host_delay;
      sample(info.now, info.now - timed_.sent_at - *info.host_delay);
    }
  }
  share.arrived += bytes;
  if (share.stalled && sends_enough(share)) {
    share.stalled = false;
    in_flight_ += share.in_flight;
  }
  request.pull.arrived += bytes;
  take_back(share, bytes);
}

void PullBudget::given_up(Channel& channel, std::size_t bytes) {
  timed_.armed = false;
  take_back(channel.pull, bytes);
}

void PullBudget::take_back(PullShare& share, std::size_t bytes) {
  if (bytes == 0) return;
  share.in_flight -= bytes;
  if (!share.stalled) in_flight_ -= bytes;
  if (share.in_flight != 0) return;
  share.stalled = false;
  share.arrived = 0;
  requested_.remove(share);
}

void PullBudget::sample(Time now, Duration taken) {
  if (taken <= Duration::zero()) return;  // a clock was set
  last_taken_ = taken;
  base_delay_.sample(now, taken);
  const Duration limit = base_delay_.get() + kTarget;
  if (taken > limit) {
    const auto part = static_cast<std::size_t>(std::max<std::int64_t>(limit * 100 / taken, 50));
    slow_down(limit_ * part / 100);
  } else if (limited_) {
    quick_ = taken < base_delay_.get() + kTarget / 4 ? quick_ + 1 : 0;
    exploring_ = exploring_ || quick_ >= kQuickSamples;
    limit_ = std::min(most_, exploring_ ? limit_ * 2 : limit_ + limit_ / 8);
  }
  limited_ = false;
}

void PullBudget::slow_down(std::size_t limit) {
  exploring_ = false;
  quick_ = 0;
  limit_ = std::max(least_, limit);
}

bool PullBudget::check_stalls(Time now) {
  if (now < check_at_) return false;
  check_at_ = now + std::max(kStallTimeout, 4 * last_taken_);
  bool lent = false;
  for (PullShare* share = requested_.front(); share != nullptr; share = requested_.after(*share)) {
    if (!share->requested && !share->stalled && !sends_enough(*share)) {
      share->stalled = lent = true;
      in_flight_ -= share->in_flight;
    }
    share->requested = false;
    share->arrived = 0;
  }
  if (!lent) return false;
  timed_.armed = false;  // the answer to the timed pull may never arrive; the next pull is timed
  if (last_host_delay_ <= kHostDelayMax) slow_down(limit_ / 2);
  return true;
}

}  // namespace cluster::protocol
