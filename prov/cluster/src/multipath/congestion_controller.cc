#include "multipath/congestion_controller.h"

#include <algorithm>

namespace cluster::multipath {

CongestionController::CongestionController(std::size_t window_max)
    : window_max_(std::max(window_max, kMinimumWindow)),
      window_(std::min(kInitialWindow, window_max_)),
      threshold_(window_max_) {}

Duration CongestionController::target() const { return std::max(kTargetDelay, base_.get() / 2); }

void CongestionController::on_ack(Time now, const AckSample& ack) {
  round_.arrived += ack.arrived;
  if (ack.round_trip) {
    look_beneath_ = base_.sample(now, *ack.round_trip) || look_beneath_;
    round_.shortest = std::min(round_.shortest, *ack.round_trip);
  }
  if (ack.reply) round_.shortest_reply = std::min(round_.shortest_reply, *ack.reply);
  if (falling_ > 0) {
    fall(ack.arrived);
  } else {
    grow(ack);
  }
  if (ack.largest_acked.before(round_.end)) return;
  judge();
  round_ = {};
  round_.end = ack.next;
}

void CongestionController::grow(const AckSample& ack) {
  const bool queued = ack.round_trip && *ack.round_trip > base_.get() + target();
  if (queued || ack.in_flight < window_ / 2) return;
  if (window_ < threshold_) {
    window_ = std::min(window_ + ack.arrived, threshold_);
    return;
  }
  earned_ += ack.arrived;
  if (earned_ < window_) return;
  earned_ -= window_;
  window_ = std::min(window_ + 1, window_max_);
  threshold_ = std::max(threshold_, window_);
}

void CongestionController::judge() {
  window_ -= falling_;  // the fall ends with the round
  falling_ = 0;
  const std::size_t frames = round_.arrived + round_.lost;
  const bool measured = round_.shortest != Duration::max();
  const Duration delay = measured ? round_.shortest - base_.get() : Duration::zero();
  const Duration limit = base_.known() ? target() : kTargetDelay;
  const bool queued = delay > limit;
  const Duration standing = std::clamp(base_.known() ? base_.get() : limit, kDelayNoise, limit / 2);
  const bool stands =
      round_.shortest_reply != Duration::max() && round_.shortest_reply - base_.get() > standing;
  const bool overflow = round_.lost > 0 && stands;
  const bool policed = round_.lost * kLossTolerance > frames && frames >= kMinimumWindow;
  std::size_t to = window_;
  if (queued && queued_before_ && window_ > kInitialWindow) {
    const auto excess = static_cast<std::size_t>((delay - limit) * 100 / round_.shortest);
    to = std::max(kInitialWindow, window_ - window_ * std::min<std::size_t>(excess, 50) / 100);
  }
  if (overflow) to = std::min(to, window_ * 7 / 10);
  if (policed) to = std::min(to, std::max(window_ / 2, window_ * round_.arrived / frames));
  queued_before_ = queued;
  if (to < window_) return reduce(to);
  quiet_rounds_ = delay > limit / 4 ? 0 : quiet_rounds_ + 1;
  if (quiet_rounds_ >= kCalmRounds) threshold_ = window_max_;
  if (look_beneath_ && measured) {
    look_beneath_ = false;
    const auto part = static_cast<std::size_t>(base_.get() * 100 / round_.shortest);
    const std::size_t back = window_;
    reduce(std::max(std::min(kInitialWindow, window_), window_ * part / 100));
    threshold_ = back;
  }
}

void CongestionController::reduce(std::size_t to) {
  // If frames were retransmitted after the previous reduction and no retransmission was spurious, the
  // previous reduction was right and is final. Otherwise an undo of this reduction also undoes the previous
  // one.
  if (undo_.retransmits != 0 && undo_.spurious == 0) undo_.possible = false;
  remember();
  to = std::max(std::min(window_, kMinimumWindow), to);
  threshold_ = std::max(to, kMinimumWindow);
  falling_ = fall_begin_ = window_ - to;
  fall_round_ = window_;
  quiet_rounds_ = 0;
}

void CongestionController::fall(std::size_t arrived) {
  earned_ += arrived * fall_begin_;
  const std::size_t step = std::min(earned_ / fall_round_, falling_);
  earned_ -= step * fall_round_;
  window_ -= step;
  falling_ -= step;
  if (falling_ == 0) earned_ = 0;
}

void CongestionController::remember() {
  if (!undo_.possible) {
    undo_.window = window_;
    undo_.threshold = threshold_;
    undo_.retransmits = undo_.spurious = 0;
  }
  undo_.possible = true;
  earned_ = 0;
}

void CongestionController::on_persistent_timeout() {
  const bool again = undo_.possible && window_ == kMinimumWindow;
  remember();
  threshold_ = std::max(kMinimumWindow, again ? threshold_ / 2 : window_);
  window_ = std::min(window_, kMinimumWindow);
  falling_ = 0;
  quiet_rounds_ = 0;
}

void CongestionController::on_spurious_retransmits(std::size_t frames) {
  if (!undo_.possible) return;
  undo_.spurious += frames;
  if (undo_.retransmits == 0 || undo_.spurious < undo_.retransmits) return;
  window_ = std::max(window_, undo_.window);
  threshold_ = std::max(threshold_, undo_.threshold);
  falling_ = 0;
  undo_.possible = false;
}

}  // namespace cluster::multipath
