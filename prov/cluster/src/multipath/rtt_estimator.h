// Smooths a time that is measured repeatedly, as in RFC 6298. Each path has two estimators (path_recovery.h):
// one for the network round trip, and one for the reply time. Samples are never ambiguous, because the peer
// names the transmission that arrived. But if a peer does not run for a while, the samples are long.
// Therefore each sample is limited to kOutlierFactor times the smoothed time before it is averaged. If an
// outage lies between a frame and its acknowledgement, a timer that followed this sample would wait for as
// long again. Therefore no sample counts as longer than kRtoMax.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace cluster::multipath {

class RttEstimator {
 public:
  void sample(Duration measured);
  void restart() { *this = {}; }
  bool measured() const { return smoothed_ > Duration::zero(); }
  /// Returns true after kSamplesMin samples. The first samples are from a path that is still empty, so later
  /// samples may be much longer.
  bool established() const { return samples_ >= kSamplesMin; }
  /// Returns the smoothed time, or zero if there is no sample yet.
  Duration smoothed() const { return smoothed_; }
  /// Returns the last sample, which is not smoothed. Loss detection uses it, so that frames on a path that
  /// has just become slow are not declared lost (RFC 9002 6.1.2).
  Duration latest() const { return latest_; }
  /// Returns the smoothed time plus 4 deviations. Hardly any sample is longer.
  Duration rto_unclamped() const { return smoothed_ + 4 * deviation_; }
  /// Returns the retransmission timeout (RFC 6298): rto_unclamped() within bounds.
  Duration rto() const;

  static constexpr Duration kRtoInitial = 1ms;
  static constexpr Duration kRtoMin = 200us;
  static constexpr Duration kRtoMax = 1s;

 private:
  static constexpr int kOutlierFactor = 8;
  static constexpr unsigned kSamplesMin = 8;

  unsigned samples_ = 0;
  Duration smoothed_{0};
  Duration deviation_{0};
  Duration latest_{0};
};

inline void RttEstimator::sample(Duration measured) {
  measured = std::clamp<Duration>(measured, 1ns, kRtoMax);
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

inline Duration RttEstimator::rto() const {
  if (!measured()) return kRtoInitial;
  return std::clamp(rto_unclamped(), established() ? kRtoMin : kRtoInitial, kRtoMax);
}

}  // namespace cluster::multipath
