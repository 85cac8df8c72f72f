#include "multipath/rtt_estimator.h"

#include <algorithm>

namespace cluster::multipath {

void RttEstimator::sample(Duration measured) {
  measured = std::max<Duration>(measured, 1ns);
  latest_ = measured;
  samples_ = std::min(samples_ + 1, kSamplesMin);
  if (smoothed_ == Duration::zero()) {
    smoothed_ = measured;
    deviation_ = measured / 2;
    return;
  }
  measured = std::min(measured, smoothed_ * kOutlierFactor + 1us);
  const Duration error = measured > smoothed_ ? measured - smoothed_ : smoothed_ - measured;
  deviation_ += (error - deviation_) / 4;
  smoothed_ = std::max<Duration>(smoothed_ + (measured - smoothed_) / 8, 1ns);
}

Duration RttEstimator::rto() const {
  if (!measured()) return kRtoInitial;
  return std::clamp(rto_unclamped(), established() ? kRtoMin : kRtoInitial, kRtoMax);
}

}  // namespace cluster::multipath
