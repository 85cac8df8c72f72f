#include "reliability/congestion.h"

#include <algorithm>

namespace cluster::reliability {

Congestion::Congestion(std::size_t window_max)
    : window_max_(std::max(window_max, kFloor)),
      window_(std::min(kFirst, window_max_)),
      threshold_(window_max_) {}

void Congestion::acknowledged(std::size_t frames, std::size_t travelling) {
  if (travelling < window_ / 2) return;
  if (window_ < threshold_) {
    window_ = std::min(window_ + frames, threshold_);
    return;
  }
  earned_ += frames;
  if (earned_ < window_) return;
  earned_ -= window_;
  window_ = std::min(window_ + 1, window_max_);
  threshold_ = std::max(threshold_, window_);
}

void Congestion::remember(Sequence next) {
  // A reduction on top of one that is still in doubt: taking it back means going back to the first.
  if (!reduced_) {
    window_before_ = window_;
    threshold_before_ = threshold_;
    repairs_ = in_vain_ = 0;
  }
  reduced_ = true;
  any_reduction_ = true;
  round_end_ = next;
  earned_ = 0;
}

void Congestion::lost(Sequence latest, Sequence next) {
  if (any_reduction_ && latest.before(round_end_)) return;
  // The round before this one was a real loss, or its repairs would have been reported by now.
  if (in_vain_ == 0) reduced_ = false;
  remember(next);
  threshold_ = window_ = std::max(kFloor, window_ * 7 / 10);
}

void Congestion::timed_out(Sequence next) {
  const bool again = reduced_ && window_ == kFloor;
  remember(next);
  if (!again) threshold_ = std::max(kFloor, window_ * 7 / 10);
  window_ = kFloor;
}

void Congestion::repaired_in_vain(std::size_t frames) {
  if (!reduced_) return;
  in_vain_ += frames;
  if (repairs_ == 0 || in_vain_ < repairs_) return;
  window_ = std::max(window_, window_before_);
  threshold_ = std::max(threshold_, threshold_before_);
  reduced_ = false;
}

}  // namespace cluster::reliability
