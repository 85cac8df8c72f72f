#include "reliability/rtt.h"

#include <algorithm>

namespace cluster::reliability {

void RoundTrip::sample(Duration measured) {
  measured = std::max<Duration>(measured, 1ns);
  latest_ = measured;
  samples_ = std::min(samples_ + 1, kFamiliar);
  if (smoothed_ == Duration::zero()) {
    smoothed_ = measured;
    deviation_ = measured / 2;
    return;
  }
  measured = std::min(measured, smoothed_ * kOutlier + 1us);
  const Duration error = measured > smoothed_ ? measured - smoothed_ : smoothed_ - measured;
  deviation_ += (error - deviation_) / 4;
  smoothed_ = std::max<Duration>(smoothed_ + (measured - smoothed_) / 8, 1ns);
}

Duration RoundTrip::timeout() const {
  if (!measured()) return kTimeoutUnmeasured;
  return std::clamp(likely_longest(), familiar() ? kTimeoutMin : kTimeoutUnmeasured, kTimeoutMax);
}

}  // namespace cluster::reliability
