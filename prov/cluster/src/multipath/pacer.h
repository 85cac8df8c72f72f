// Spreads a window over its round trip, so that a switch with little memory is not handed all of it at
// once. In steady state it delays nothing that acknowledgements call for: the pace is a quarter faster
// than the window, and a quarter of the window (at least kBurstMin frames, a first window) may go at
// once. A bucket, kept as the moment at which it is full again.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/units.h"

namespace cluster::multipath {

class Pacer {
 public:
  /// From now on `window` frames per four fifths of `round_trip`.
  void pace(Duration round_trip, std::size_t window) {
    interval_ = round_trip * 4 / 5 / static_cast<std::int64_t>(std::max<std::size_t>(window, 1));
    burst_ = std::max(kBurstMin, window / 4);
  }
  /// Frames that may leave now.
  std::size_t allowance(Time now) const {
    if (full_at_ <= now || interval_ <= Duration::zero()) return burst_;
    const auto missing = static_cast<std::size_t>((full_at_ - now + interval_ - 1ns) / interval_);
    return burst_ - std::min(burst_, missing);
  }
  void on_sent(Time now, std::size_t frames = 1) {
    full_at_ = std::max(full_at_, now) + interval_ * static_cast<std::int64_t>(frames);
  }
  /// When enough frames for a turn may leave; kNever if they may leave now.
  Time ready_after(Time now) const {
    const Time at = full_at_ - interval_ * static_cast<std::int64_t>(burst_ - kQuantum);
    return at > now ? at : kNever;
  }

 private:
  static constexpr std::size_t kBurstMin = 32;
  static constexpr std::size_t kQuantum = 8;

  Duration interval_{0};
  std::size_t burst_ = kBurstMin;
  Time full_at_{};
};

}  // namespace cluster::multipath
