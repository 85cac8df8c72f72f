// Computes the minimum of the samples in a sliding window of time. The window has two halves, and each half
// has its own minimum. A sample counts for at least half the length of the window. A new half begins only
// with a sample. Therefore, if no samples arrive, old samples count for longer than the window.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cluster {

class WindowedMin {
 public:
  explicit WindowedMin(Duration memory) : half_(memory / 2) {}

  /// Adds a sample. Returns true if this sample begins a new half, so that the samples of the older half
  /// leave the window.
  bool sample(Time now, Duration value) {
    const bool turned = known() && now >= turn_at_;
    if (turned || !known()) {
      previous_ = turned ? current_ : value;
      current_ = value;
      turn_at_ = now + half_;
    }
    current_ = std::min(current_, value);
    return turned;
  }
  bool known() const { return current_ != Duration::max(); }
  /// Returns the minimum. Call it only if known().
  Duration get() const { return std::min(current_, previous_); }

 private:
  Duration half_;
  Duration current_ = Duration::max();
  Duration previous_ = Duration::max();
  Time turn_at_{};
};

}  // namespace cluster
