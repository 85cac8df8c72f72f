// How long a thread that waits for a long message from a group leaves its frames to gather before it looks again. Woken by each it
// would spend more time on waking, and on finding that the message is not whole, than on the frames themselves; and to wake it
// costs the processor that brought the frame, where nodes share one that of the sender. How fast frames come is measured from one
// look to the next, as long as a message is under way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/units.h"

namespace cluster::engine {

class GatherTime {
 public:
  static constexpr std::size_t kFrames = 16;  ///< one read of a group's socket, and a small part of what that holds
  static constexpr Duration kShortest = 50us;  ///< a thread cannot sleep for less
  static constexpr Duration kLongest = 250us;  ///< so long nothing else is noticed

  /// A look has brought so many frames. `under_way`: those before had left a message unfinished.
  void note(Time now, std::size_t frames, bool under_way) {
    if (frames == 0) return;
    if (under_way) {
      const Duration each = (now - last_) / static_cast<std::int64_t>(frames);
      interval_ = interval_ == Duration::zero() ? each : interval_ + (each - interval_) / kSmoothing;
    }
    last_ = now;
    fresh_ = true;
  }
  /// Of a message so many frames are still to come. Zero: they come too fast, are too few, or nothing has come since the last
  /// call, and perhaps nothing will.
  Duration take(std::size_t frames_left) {
    if (!std::exchange(fresh_, false)) return Duration::zero();
    const Duration time = interval_ * static_cast<std::int64_t>(std::min(frames_left, kFrames));
    return time < kShortest ? Duration::zero() : std::min(time, kLongest);
  }

 private:
  static constexpr std::int64_t kSmoothing = 8;

  Time last_{};
  Duration interval_{0};  ///< between frames
  bool fresh_ = false;
};

}  // namespace cluster::engine
