// Spreads the transmission of frames over time, so that a switch with little memory does not get all of them
// together. The pacer is a token bucket (RFC 2697). It stores only the time at which the bucket is full
// again. The paths of flows (path_recovery.h) and the streams of groups (group/pace.h) use it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/units.h"

namespace cluster::multipath {

class Pacer {
 public:
  Pacer(Duration interval, std::size_t burst) : interval_(interval), burst_(burst) {}

  Duration interval() const { return interval_; }
  /// From now on, allows one frame per `interval`, and bursts of at most `burst` frames.
  void set(Duration interval, std::size_t burst) {
    interval_ = interval;
    burst_ = burst;
  }
  std::size_t allowance(Time now) const {
    if (full_at_ <= now || interval_ <= Duration::zero()) return burst_;
    const auto missing = static_cast<std::size_t>((full_at_ - now + interval_ - 1ns) / interval_);
    return burst_ - std::min(burst_, missing);
  }
  void on_sent(Time now, std::size_t frames = 1) {
    full_at_ = std::max(full_at_, now) + interval_ * static_cast<std::int64_t>(frames);
  }
  /// Returns when a burst of `frames` frames may be sent. The time can be in the past. `frames` must not
  /// exceed the burst.
  Time ready_at(std::size_t frames) const {
    return full_at_ - interval_ * static_cast<std::int64_t>(burst_ - frames);
  }

 private:
  Duration interval_;
  std::size_t burst_;
  Time full_at_{};
};

}  // namespace cluster::multipath
